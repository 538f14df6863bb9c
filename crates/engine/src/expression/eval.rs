//! What an expression comes to, with its cost counted.

use super::EvaluationError;
use super::ast::{Expr, Kind, Macro, Root};
use super::functions::Compiled;
use super::value::{Text, Val};
use crate::template::{Layers, Miss};
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(super) fn evaluate(root: &Expr, layers: &dyn Layers, most: u64) -> Result<Value, EvaluationError> {
    let mut evaluation = Evaluation { layers, left: most, vars: Vec::new(), patterns: BTreeMap::new() };
    let result = evaluation.eval(root).and_then(|value| evaluation.json(root.at, &value, 0));
    result.map_err(|stop| match stop {
        Stop::Wrong { at, message } => EvaluationError::Wrong { at, message },
        Stop::Missing { at, root, miss } => {
            EvaluationError::Wrong { at, message: evaluation.missing(at, root, miss) }
        }
        Stop::TooMuch => EvaluationError::TooMuch { most },
    })
}

pub(super) struct Evaluation<'a> {
    pub(super) layers: &'a dyn Layers,
    /// What it may still cost.
    left: u64,
    /// What the variables of macros stand for, the outermost first.
    vars: Vec<Val<'a>>,
    /// Patterns that were compiled.
    pub(super) patterns: BTreeMap<String, Compiled>,
}

/// Why there is no value.
pub(super) enum Stop<'a> {
    Wrong {
        at: usize,
        message: String,
    },
    /// A path leads nowhere. What is told of it is found out only if nothing makes up for it.
    Missing {
        at: usize,
        root: &'a Root,
        miss: Miss,
    },
    /// Nothing makes up for that.
    TooMuch,
}

pub(super) type Outcome<'a, T = Val<'a>> = Result<T, Stop<'a>>;

impl Stop<'_> {
    pub(super) fn wrong(at: usize, message: impl Into<String>) -> Self {
        Self::Wrong { at, message: message.into() }
    }
}

impl<'a> Evaluation<'a> {
    pub(super) fn pay(&mut self, cost: usize) -> Outcome<'a, ()> {
        self.pay_steps(u64::try_from(cost).unwrap_or(u64::MAX))
    }

    pub(super) fn pay_steps(&mut self, cost: u64) -> Outcome<'a, ()> {
        let left = self.left.checked_sub(cost);
        self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Stop::TooMuch)
    }

    pub(super) fn eval(&mut self, expr: &'a Expr) -> Outcome<'a> {
        self.pay(1)?;
        let at = expr.at;
        Ok(match &expr.kind {
            Kind::Null => Val::Null,
            Kind::Bool(value) => Val::Bool(*value),
            Kind::Int(number) => Val::Int(*number),
            Kind::Uint(number) => Val::Uint(*number),
            Kind::Double(number) => Val::Double(*number),
            Kind::Text(text) => Val::Text(Text::Read(text)),
            Kind::List(items) => Val::List(Rc::new(self.all(items)?)),
            Kind::Map(members) => self.map(members)?,
            Kind::Root(root) => self.root(at, root)?,
            Kind::Var(index) => self.vars.get(*index).cloned().unwrap_or(Val::Null),
            Kind::Member(of, name) => {
                let of = self.eval(of)?;
                self.member(at, &of, &Val::Text(Text::Read(name)))?
            }
            Kind::Index(of, index) => {
                let (of, index) = (self.eval(of)?, self.eval(index)?);
                self.indexed(at, &of, &index)?
            }
            Kind::Has(of) => Val::Bool(self.has(of)?),
            Kind::Not(of) => match self.eval(of)? {
                Val::Bool(value) => Val::Bool(!value),
                other => {
                    return Err(Stop::wrong(
                        at,
                        format!("`!` is of a boolean, and this is {}", other.kind()),
                    ));
                }
            },
            Kind::Negate(of) => match self.eval(of)? {
                Val::Double(number) => Val::Double(-number),
                Val::Int(number) => match number.checked_neg() {
                    Some(number) => Val::Int(number),
                    None => return Err(Stop::wrong(at, "the result of `-` is too large for an int")),
                },
                other => {
                    return Err(Stop::wrong(
                        at,
                        format!("`-` is of an int or a double, and this is {}", other.kind()),
                    ));
                }
            },
            Kind::Chain(first, more) => {
                let mut value = self.eval(first)?;
                for (at, operator, side) in more {
                    let side = self.eval(side)?;
                    value = self.operate(*at, *operator, &value, &side)?;
                }
                value
            }
            Kind::All(sides) => self.logic(at, sides, false)?,
            Kind::Any(sides) => self.logic(at, sides, true)?,
            Kind::Choose(ways) => match self.eval(&ways.0)? {
                Val::Bool(true) => self.eval(&ways.1)?,
                Val::Bool(false) => self.eval(&ways.2)?,
                other => {
                    return Err(Stop::wrong(at, format!("`?` asks a boolean, and this is {}", other.kind())));
                }
            },
            Kind::Call(function, args) => {
                let args = self.all(args)?;
                self.call(at, *function, &args)?
            }
            Kind::Macro(found, over, body, then) => {
                let over = self.eval(over)?;
                self.each(at, *found, &over, body, then.as_deref())?
            }
        })
    }

    fn all(&mut self, items: &'a [Expr]) -> Outcome<'a, Vec<Val<'a>>> {
        items.iter().map(|item| self.eval(item)).collect()
    }

    fn map(&mut self, members: &'a [(Expr, Expr)]) -> Outcome<'a> {
        let mut made: Vec<(Val<'a>, Val<'a>)> = Vec::with_capacity(members.len());
        for (key_expr, value) in members {
            let key = self.eval(key_expr)?;
            if !key.can_be_key() {
                return Err(Stop::wrong(key_expr.at, format!("the key of a map can't be {}", key.kind())));
            }
            self.pay(made.len())?;
            if made.iter().any(|(known, _)| known.is_key(&key)) {
                return Err(Stop::wrong(key_expr.at, "a map has this key twice"));
            }
            made.push((key, self.eval(value)?));
        }
        Ok(Val::Map(Rc::new(made)))
    }

    /// `&&`, or `||`, of which `decides` is the value that decides: an error or something else counts only if nothing does.
    fn logic(&mut self, at: usize, sides: &'a [Expr], decides: bool) -> Outcome<'a> {
        let mut stopped = None;
        for side in sides {
            let value = self.eval(side);
            if self.decided(at, value, decides, &mut stopped)? {
                return Ok(Val::Bool(decides));
            }
        }
        stopped.map_or(Ok(Val::Bool(!decides)), Err)
    }

    /// Whether a value decides. The first that is no boolean is kept as why there may be none.
    fn decided(
        &self,
        at: usize,
        value: Outcome<'a>,
        decides: bool,
        stopped: &mut Option<Stop<'a>>,
    ) -> Outcome<'a, bool> {
        let stop = match value {
            Ok(Val::Bool(value)) => return Ok(value == decides),
            Ok(other) => Stop::wrong(at, format!("a boolean belongs here, and this is {}", other.kind())),
            Err(Stop::TooMuch) => return Err(Stop::TooMuch),
            Err(stop) => stop,
        };
        stopped.get_or_insert(stop);
        Ok(false)
    }

    pub(super) fn member(&mut self, at: usize, of: &Val<'a>, key: &Val<'_>) -> Outcome<'a> {
        self.pay(of.search())?;
        if of.members().is_none() {
            return Err(Stop::wrong(at, format!("{} has no fields", of.kind())));
        }
        of.member(key).ok_or_else(|| {
            let key = if let Val::Text(key) = key { key.as_str() } else { "" };
            let shown: String = key.chars().take(60).collect();
            Stop::wrong(at, format!("the map has no such key: `{shown}`"))
        })
    }

    fn has(&mut self, of: &'a Expr) -> Outcome<'a, bool> {
        match &of.kind {
            Kind::Root(root) => self.has_root(of.at, root),
            Kind::Member(map, name) => {
                let map = self.eval(map)?;
                self.pay(map.search())?;
                match map.members() {
                    Some(_) => Ok(map.member(&Val::Text(Text::Read(name))).is_some()),
                    None => Err(Stop::wrong(of.at, format!("`has` asks for a field of {}", map.kind()))),
                }
            }
            _ => Ok(false),
        }
    }

    fn indexed(&mut self, at: usize, of: &Val<'a>, index: &Val<'_>) -> Outcome<'a> {
        let Some(length) = of.length() else {
            return match index.can_be_key() || matches!(index, Val::Double(_)) {
                true => self.member(at, of, index),
                false => Err(Stop::wrong(at, format!("{} can't be a key", index.kind()))),
            };
        };
        let number = match index {
            Val::Int(number) => usize::try_from(*number).ok(),
            Val::Uint(number) => usize::try_from(*number).ok(),
            Val::Double(number) if number.fract() == 0.0 && *number >= 0.0 && *number < 1e15 => {
                Some(*number as usize)
            }
            Val::Double(_) => None,
            other => return Err(Stop::wrong(at, format!("a list has no element at {}", other.kind()))),
        };
        let found = number.and_then(|number| of.item(number));
        found.ok_or_else(|| {
            Stop::wrong(at, format!("the list has {length} elements, counted from 0, and none at this index"))
        })
    }

    fn each(
        &mut self,
        at: usize,
        found: Macro,
        over: &Val<'a>,
        body: &'a Expr,
        then: Option<&'a Expr>,
    ) -> Outcome<'a> {
        let items: Vec<Val<'a>> = match (over.length(), over.members()) {
            (Some(length), _) => {
                self.pay(length)?;
                (0..length).filter_map(|index| over.item(index)).collect()
            }
            (_, Some(members)) => {
                self.pay(members)?;
                over.entries().into_iter().map(|(key, _)| key).collect()
            }
            _ => {
                return Err(Stop::wrong(
                    at,
                    format!("a list or a map belongs before this, and it is {}", over.kind()),
                ));
            }
        };
        let (mut kept, mut stopped) = (Vec::new(), None);
        for item in items {
            self.vars.push(item.clone());
            let outcome = self.element(at, found, body, then, item, &mut stopped);
            self.vars.pop();
            match (found, outcome?) {
                (Macro::All | Macro::Exists, Some(_)) => return Ok(Val::Bool(found == Macro::Exists)),
                (_, kept_item) => kept.extend(kept_item),
            }
        }
        if let Some(stop) = stopped {
            return Err(stop);
        }
        Ok(match found {
            Macro::All | Macro::Exists => Val::Bool(found == Macro::All),
            Macro::ExistsOne => Val::Bool(kept.len() == 1),
            Macro::Map | Macro::Filter => Val::List(Rc::new(kept)),
        })
    }

    /// What one element, which is the innermost variable, brings; of `all` and `exists` something if it decides.
    fn element(
        &mut self,
        at: usize,
        found: Macro,
        body: &'a Expr,
        then: Option<&'a Expr>,
        item: Val<'a>,
        stopped: &mut Option<Stop<'a>>,
    ) -> Outcome<'a, Option<Val<'a>>> {
        let value = self.eval(body);
        if matches!(found, Macro::All | Macro::Exists) {
            let decides = self.decided(at, value, found == Macro::Exists, stopped)?;
            return Ok(decides.then_some(item));
        }
        let value = value?;
        if found == Macro::Map && then.is_none() {
            return Ok(Some(value));
        }
        match (value, then) {
            (Val::Bool(false), _) => Ok(None),
            (Val::Bool(true), None) => Ok(Some(item)),
            (Val::Bool(true), Some(then)) => self.eval(then).map(Some),
            (other, _) => {
                Err(Stop::wrong(body.at, format!("a boolean belongs here, and this is {}", other.kind())))
            }
        }
    }
}
