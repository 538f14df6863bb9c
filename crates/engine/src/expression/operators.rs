//! Operators between two values: arithmetic, order, equality and `in`.

use super::ast::Binary;
use super::eval::{Evaluation, Outcome, Stop};
use super::numbers;
use super::value::Val;
use std::cmp::Ordering;
use std::rc::Rc;

impl<'a> Evaluation<'a> {
    pub(super) fn operate(
        &mut self,
        at: usize,
        operator: Binary,
        left: &Val<'a>,
        right: &Val<'a>,
    ) -> Outcome<'a> {
        self.pay(1)?;
        match operator {
            Binary::Equal => return self.equal(left, right).map(Val::Bool),
            Binary::NotEqual => return self.equal(left, right).map(|equal| Val::Bool(!equal)),
            Binary::In => return self.is_in(at, left, right).map(Val::Bool),
            Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => {
                return self.ordered(at, operator, left, right).map(Val::Bool);
            }
            _ => {}
        }
        if let Some(result) = numbers::calculate(operator, left, right) {
            return result.map_err(|message| Stop::wrong(at, message));
        }
        if operator == Binary::Add {
            if let (Val::Text(left), Val::Text(right)) = (left, right) {
                let (left, right) = (left.as_str(), right.as_str());
                self.pay(left.len() + right.len())?;
                return Ok(Val::made([left, right].concat()));
            }
            if let (Some(before), Some(behind)) = (left.length(), right.length()) {
                self.pay(before + behind)?;
                let items = (0..before).filter_map(|at| left.item(at));
                return Ok(Val::List(Rc::new(
                    items.chain((0..behind).filter_map(|at| right.item(at))).collect(),
                )));
            }
        }
        Err(undefined(at, operator, left, right))
    }

    fn ordered(&mut self, at: usize, operator: Binary, left: &Val<'a>, right: &Val<'a>) -> Outcome<'a, bool> {
        let order = match (left, right) {
            (Val::Bool(left), Val::Bool(right)) => Some(left.cmp(right)),
            (Val::Text(left), Val::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                self.pay(left.len().min(right.len()))?;
                Some(left.cmp(right))
            }
            _ => numbers::compare(left, right).ok_or_else(|| undefined(at, operator, left, right))?,
        };
        Ok(order.is_some_and(|order| match operator {
            Binary::Less => order == Ordering::Less,
            Binary::LessOrEqual => order != Ordering::Greater,
            Binary::Greater => order == Ordering::Greater,
            _ => order != Ordering::Less,
        }))
    }

    fn is_in(&mut self, at: usize, value: &Val<'a>, within: &Val<'a>) -> Outcome<'a, bool> {
        if let Some(length) = within.length() {
            for index in 0..length {
                if let Some(item) = within.item(index)
                    && self.equal(value, &item)?
                {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        if within.members().is_none() {
            return Err(Stop::wrong(at, format!("`in` asks a list or a map, and this is {}", within.kind())));
        }
        self.pay(within.search())?;
        Ok(within.member(value).is_some())
    }

    /// Values of different kinds differ; numbers are equal by value.
    fn equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Outcome<'a, bool> {
        self.pay(1)?;
        Ok(match (left, right) {
            (Val::Null, Val::Null) => true,
            (Val::Bool(left), Val::Bool(right)) => left == right,
            (Val::Text(left), Val::Text(right)) => {
                let (left, right) = (left.as_str(), right.as_str());
                if left.len() == right.len() {
                    self.pay(left.len())?;
                }
                left == right
            }
            _ => {
                if let (Some(own), Some(other)) = (left.length(), right.length()) {
                    return self.equal_lists(left, right, own, other);
                }
                if let (Some(own), Some(other)) = (left.members(), right.members()) {
                    return self.equal_maps(left, right, own, other);
                }
                numbers::compare(left, right) == Some(Some(Ordering::Equal))
            }
        })
    }

    fn equal_lists(
        &mut self,
        left: &Val<'a>,
        right: &Val<'a>,
        own: usize,
        other: usize,
    ) -> Outcome<'a, bool> {
        for index in 0..if own == other { own } else { 0 } {
            if let (Some(left), Some(right)) = (left.item(index), right.item(index))
                && !self.equal(&left, &right)?
            {
                return Ok(false);
            }
        }
        Ok(own == other)
    }

    fn equal_maps(&mut self, left: &Val<'a>, right: &Val<'a>, own: usize, other: usize) -> Outcome<'a, bool> {
        if own != other {
            return Ok(false);
        }
        self.pay(own)?;
        for (key, value) in left.entries() {
            self.pay(right.search())?;
            match right.member(&key) {
                Some(found) if self.equal(&value, &found)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn undefined<'a>(at: usize, operator: Binary, left: &Val<'_>, right: &Val<'_>) -> Stop<'a> {
    let (sign, left_kind, right_kind) = (operator.sign(), left.kind(), right.kind());
    let hint = match numbers::compare(left, right) {
        Some(_) if left_kind != right_kind => "; both have to be of one kind: double(x), int(x)",
        _ => "",
    };
    Stop::wrong(at, format!("`{sign}` is not defined for {left_kind} and {right_kind}{hint}"))
}
