//! Arithmetic and order of numbers: exact, and an overflow is an error.

use super::ast::Binary;
use super::value::Val;
use std::cmp::Ordering;

/// Beyond every integer that there is here, and exact as a double.
const BEYOND: f64 = 36_893_488_147_419_103_232.0;

/// How two numbers stand to each other, of whichever kinds; nothing within if one of them is none (NaN), and nothing at all if
/// they are not numbers.
pub(super) fn compare(left: &Val<'_>, right: &Val<'_>) -> Option<Option<Ordering>> {
    Some(match (left, right) {
        (Val::Double(left), Val::Double(right)) => left.partial_cmp(right),
        (Val::Double(left), _) => against(integer(right)?, *left).map(Ordering::reverse),
        (_, Val::Double(right)) => against(integer(left)?, *right),
        _ => Some(integer(left)?.cmp(&integer(right)?)),
    })
}

fn integer(value: &Val<'_>) -> Option<i128> {
    match value {
        Val::Int(number) => Some(i128::from(*number)),
        Val::Uint(number) => Some(i128::from(*number)),
        _ => None,
    }
}

fn against(integer: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() >= BEYOND {
        return Some(if double > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let whole = double.trunc();
    let order = integer.cmp(&(whole as i128));
    Some(order.then_with(|| whole.partial_cmp(&double).unwrap_or(Ordering::Equal)))
}

/// `+ - * / %` of two numbers of one kind; nothing if they are not.
pub(super) fn calculate<'v>(
    operator: Binary,
    left: &Val<'_>,
    right: &Val<'_>,
) -> Option<Result<Val<'v>, String>> {
    Some(match (left, right) {
        (Val::Int(left), Val::Int(right)) => {
            let (left, right) = (*left, *right);
            let result = match operator {
                Binary::Add => left.checked_add(right),
                Binary::Subtract => left.checked_sub(right),
                Binary::Multiply => left.checked_mul(right),
                Binary::Divide => left.checked_div(right),
                Binary::Modulo => left.checked_rem(right),
                _ => return None,
            };
            result.map(Val::Int).ok_or_else(|| why(operator, right == 0, "an int"))
        }
        (Val::Uint(left), Val::Uint(right)) => {
            let (left, right) = (*left, *right);
            let result = match operator {
                Binary::Add => left.checked_add(right),
                Binary::Subtract => left.checked_sub(right),
                Binary::Multiply => left.checked_mul(right),
                Binary::Divide => left.checked_div(right),
                Binary::Modulo => left.checked_rem(right),
                _ => return None,
            };
            result.map(Val::Uint).ok_or_else(|| why(operator, right == 0, "a uint"))
        }
        (Val::Double(left), Val::Double(right)) => Ok(Val::Double(match operator {
            Binary::Add => left + right,
            Binary::Subtract => left - right,
            Binary::Multiply => left * right,
            Binary::Divide => left / right,
            _ => return None,
        })),
        _ => return None,
    })
}

fn why(operator: Binary, by_zero: bool, kind: &str) -> String {
    match operator {
        Binary::Divide | Binary::Modulo if by_zero => format!("`{}` by zero", operator.sign()),
        _ => format!("the result of `{}` is too large, or too small, for {kind}", operator.sign()),
    }
}
