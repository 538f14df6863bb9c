//! What an expression is, parsed.

use crate::template::Path;
use std::sync::Arc;

/// A part of an expression, with all that belongs to it.
#[derive(Debug)]
pub(super) struct Expr {
    /// Byte offset of its first character, or of its operator.
    pub(super) at: usize,
    /// How many levels it has, itself included: what walking it takes of the stack.
    pub(super) height: usize,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    List(Vec<Expr>),
    Map(Vec<(Expr, Expr)>),
    /// A placeholder's path, as far as it is written out.
    Root(Root),
    /// The variable of a macro around it, counted from the outermost.
    Var(usize),
    /// `e.name`
    Member(Box<Expr>, Arc<str>),
    /// `e[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `has(e.name)`; the part is a [`Kind::Member`], or a [`Kind::Root`] with a name behind it.
    Has(Box<Expr>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// Operators of one rank, from left to right: each with its place, and what stands on its right.
    Chain(Box<Expr>, Vec<(usize, Binary, Expr)>),
    /// `a && b && …`
    All(Vec<Expr>),
    /// `a || b || …`
    Any(Vec<Expr>),
    /// `c ? a : b`
    Choose(Box<(Expr, Expr, Expr)>),
    Call(Function, Vec<Expr>),
    Macro(Macro, Box<Expr>, Box<Expr>, Option<Box<Expr>>),
}

/// A name that placeholders know, and how it goes on from there.
#[derive(Debug)]
pub(super) struct Root {
    /// The path that a placeholder would have.
    pub(super) path: Path,
    /// It was written as `results["id"]`: its first name is the id of a node and nothing else.
    pub(super) of_results: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    In,
}

impl Binary {
    /// The operator of a sign, and its rank: higher ones bind tighter.
    pub(super) fn of(sign: &str) -> Option<(Self, usize)> {
        Some(match sign {
            "<" => (Self::Less, 0),
            "<=" => (Self::LessOrEqual, 0),
            ">" => (Self::Greater, 0),
            ">=" => (Self::GreaterOrEqual, 0),
            "==" => (Self::Equal, 0),
            "!=" => (Self::NotEqual, 0),
            "in" => (Self::In, 0),
            "+" => (Self::Add, 1),
            "-" => (Self::Subtract, 1),
            "*" => (Self::Multiply, 2),
            "/" => (Self::Divide, 2),
            "%" => (Self::Modulo, 2),
            _ => return None,
        })
    }
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::In => "in",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Size,
    String,
    Int,
    Uint,
    Double,
    Bool,
    /// Its argument: a type checker would be told to ask nothing.
    Dyn,
    StartsWith,
    EndsWith,
    Contains,
    Matches,
}

impl Function {
    /// The function of a name, how many arguments it takes with the value before the dot, and how it may be written: as
    /// `f(x)`, as `x.f()`.
    pub(super) fn of(name: &str) -> Option<(Self, usize, bool, bool)> {
        Some(match name {
            "size" => (Self::Size, 1, true, true),
            "string" => (Self::String, 1, true, false),
            "int" => (Self::Int, 1, true, false),
            "uint" => (Self::Uint, 1, true, false),
            "double" => (Self::Double, 1, true, false),
            "bool" => (Self::Bool, 1, true, false),
            "dyn" => (Self::Dyn, 1, true, false),
            "startsWith" => (Self::StartsWith, 2, false, true),
            "endsWith" => (Self::EndsWith, 2, false, true),
            "contains" => (Self::Contains, 2, false, true),
            "matches" => (Self::Matches, 2, true, true),
            _ => return None,
        })
    }
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::String => "string",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Bool => "bool",
            Self::Dyn => "dyn",
            Self::StartsWith => "startsWith",
            Self::EndsWith => "endsWith",
            Self::Contains => "contains",
            Self::Matches => "matches",
        }
    }
}

/// What goes through the elements of a list, or the keys of a map: `e.all(x, p)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Macro {
    All,
    Exists,
    ExistsOne,
    /// With a third part, the second says which elements are taken.
    Map,
    Filter,
}

impl Macro {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "all" => Self::All,
            "exists" => Self::Exists,
            "exists_one" | "existsOne" => Self::ExistsOne,
            "map" => Self::Map,
            "filter" => Self::Filter,
            _ => return None,
        })
    }
}

impl Expr {
    /// The parts that it is made of.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Double(_)
            | Kind::Text(_)
            | Kind::Root(_)
            | Kind::Var(_) => Vec::new(),
            Kind::List(items) | Kind::All(items) | Kind::Any(items) | Kind::Call(_, items) => {
                items.iter().collect()
            }
            Kind::Map(members) => members.iter().flat_map(|(key, value)| [key, value]).collect(),
            Kind::Member(of, _) | Kind::Has(of) | Kind::Not(of) | Kind::Negate(of) => vec![of],
            Kind::Index(of, index) => vec![of, index],
            Kind::Chain(first, more) => {
                std::iter::once(&**first).chain(more.iter().map(|(_, _, side)| side)).collect()
            }
            Kind::Choose(ways) => vec![&ways.0, &ways.1, &ways.2],
            Kind::Macro(_, over, body, then) => {
                [Some(over), Some(body), then.as_ref()].into_iter().flatten().map(|part| &**part).collect()
            }
        }
    }
}
