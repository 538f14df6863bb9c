//! Parameters of requests: in their paths and in their queries.

/// A parameter of a query.
pub(crate) struct Param {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    pub(crate) about: &'static str,
}

/// What a parameter is.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// Texts: it may be there several times.
    Texts,
    /// From 1 on.
    Number {
        most: u64,
    },
    /// The number of an event, or 0 for before the first.
    Event,
    /// A place in a list, or from its end if it is negative.
    Place,
    OneOf(&'static [&'static str]),
}

impl Kind {
    /// What the parameter has to be, if this is none.
    pub(crate) fn fits(self, value: &str) -> Result<(), String> {
        let fits = match self {
            Self::Text | Self::Texts => true,
            Self::Number { most } => value.parse::<u64>().is_ok_and(|number| (1..=most).contains(&number)),
            Self::Event => value.parse::<u64>().is_ok_and(|number| i64::try_from(number).is_ok()),
            Self::Place => value.parse::<i64>().is_ok(),
            Self::OneOf(words) => words.contains(&value),
        };
        if fits { Ok(()) } else { Err(self.words()) }
    }

    fn words(self) -> String {
        match self {
            Self::Text | Self::Texts => "a text".to_owned(),
            Self::Number { most } => format!("a number from 1 to {most}"),
            Self::Event => "the number of an event".to_owned(),
            Self::Place => "a whole number".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
        }
    }
}

/// What stands in a path, by the names that a route has for it.
pub(crate) type Parts = Vec<(&'static str, String)>;
