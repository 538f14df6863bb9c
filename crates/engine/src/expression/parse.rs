//! From words to an expression, by descent: one level of calls for each level of nesting, of which there are at most
//! [`DEPTH`].
//!
//! ```text
//! expr    = or ["?" or ":" expr]
//! or      = and {"||" and}
//! and     = ranked {"&&" ranked}
//! ranked  = unary {operator unary}            relations, then + -, then * / %
//! unary   = {"!"} member | {"-"} member
//! member  = primary {"." name | "." name "(" args ")" | "[" expr "]"}
//! primary = literal | name | name "(" args ")" | "(" expr ")" | "[" args "]" | "{" [expr ":" expr {"," …}] "}"
//! ```

use super::access::{RESULTS, indexed, no_bare_results, selected};
use super::ast::{Binary, Expr, Function, Kind, Macro, Root};
use super::lex::{Placed, Word, words};
use super::{BYTES, DEPTH, ExpressionError, functions};
use crate::template::{Path, Seg};
use std::sync::Arc;

pub(super) type Read<T> = Result<T, ExpressionError>;

/// Words of CEL that are no names.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Names that are values or operators.
const LITERALS: [&str; 4] = ["true", "false", "null", "in"];

/// The tightest rank of operators.
const TIGHTEST: usize = 2;

pub(super) fn parse(source: &str) -> Read<Expr> {
    if source.len() > BYTES {
        let message = format!("the expression has {} bytes, over the limit of {BYTES}", source.len());
        return Err(ExpressionError::new(0, message));
    }
    let words = words(source)?;
    let mut parser = Parser { words: &words, next: 0, depth: 0, vars: Vec::new() };
    if matches!(parser.peek().word, Word::End) {
        return Err(ExpressionError::new(0, "there is no expression"));
    }
    let root = parser.expr()?;
    match parser.peek() {
        Placed { word: Word::End, .. } => Ok(root),
        other => Err(unexpected(other, "an operator, or the end")),
    }
}

struct Parser<'t> {
    words: &'t [Placed],
    next: usize,
    /// Levels of [`Parser::expr`] that are under way.
    depth: usize,
    /// Variables of the macros around, the outermost first.
    vars: Vec<Arc<str>>,
}

/// What stands behind the last word.
static END: Placed = Placed { at: 0, word: Word::End };

impl Parser<'_> {
    fn peek(&self) -> &Placed {
        self.words.get(self.next).or(self.words.last()).unwrap_or(&END)
    }
    fn at(&self) -> usize {
        self.peek().at
    }
    fn is_at(&self, sign: &str) -> bool {
        matches!(self.peek().word, Word::Sign(found) if found == sign)
    }
    fn take(&mut self, sign: &str) -> bool {
        let found = self.is_at(sign);
        self.next += usize::from(found);
        found
    }
    fn expect(&mut self, sign: &str) -> Read<()> {
        if self.take(sign) { Ok(()) } else { Err(unexpected(self.peek(), &format!("`{sign}`"))) }
    }

    fn expr(&mut self) -> Read<Expr> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(too_deep(self.at()));
        }
        let condition = self.logic("||")?;
        let at = self.at();
        let whole = if self.take("?") {
            let then = self.logic("||")?;
            self.expect(":")?;
            let otherwise = self.expr()?;
            node(at, Kind::Choose(Box::new((condition, then, otherwise))))?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    /// What `||`, and within it `&&`, join.
    fn logic(&mut self, sign: &'static str) -> Read<Expr> {
        let side = |parser: &mut Self| if sign == "||" { parser.logic("&&") } else { parser.ranked(0) };
        let (first, at) = (side(self)?, self.at());
        if !self.is_at(sign) {
            return Ok(first);
        }
        let mut sides = vec![first];
        while self.take(sign) {
            sides.push(side(self)?);
        }
        node(at, if sign == "||" { Kind::Any(sides) } else { Kind::All(sides) })
    }

    fn ranked(&mut self, rank: usize) -> Read<Expr> {
        let side = |parser: &mut Self| if rank < TIGHTEST { parser.ranked(rank + 1) } else { parser.unary() };
        let first = side(self)?;
        let mut more = Vec::new();
        while let Some(operator) = self.operator(rank) {
            let at = self.at();
            self.next += 1;
            more.push((at, operator, side(self)?));
        }
        match more.first() {
            None => Ok(first),
            Some((at, ..)) => node(*at, Kind::Chain(Box::new(first), more)),
        }
    }

    fn operator(&self, rank: usize) -> Option<Binary> {
        let sign = match &self.peek().word {
            Word::Sign(sign) => sign,
            Word::Name(name) if &**name == "in" => "in",
            _ => return None,
        };
        Binary::of(sign).filter(|(_, of)| *of == rank).map(|(operator, _)| operator)
    }

    fn unary(&mut self) -> Read<Expr> {
        let sign = if self.is_at("!") { "!" } else { "-" };
        let mut places = Vec::new();
        while self.is_at(sign) {
            places.push(self.at());
            self.next += 1;
            if places.len() > DEPTH {
                return Err(too_deep(self.at()));
            }
        }
        // The smallest number can't be written without its sign.
        let negative = sign == "-" && !places.is_empty() && matches!(self.peek().word, Word::Int(_));
        if negative {
            places.pop();
        }
        let mut expr = self.member(negative)?;
        for at in places.into_iter().rev() {
            let of = Box::new(expr);
            expr = node(at, if sign == "!" { Kind::Not(of) } else { Kind::Negate(of) })?;
        }
        Ok(expr)
    }

    fn member(&mut self, negative: bool) -> Read<Expr> {
        let mut expr = self.primary(negative)?;
        loop {
            let at = self.at();
            if self.take("[") {
                let index = self.expr()?;
                self.expect("]")?;
                expr = indexed(at, expr, index)?;
            } else if self.take(".") {
                let name = self.selector()?;
                if self.is_at("(") {
                    self.next += 1;
                    expr = self.method(at, expr, &name)?;
                } else {
                    expr = selected(at, expr, name)?;
                }
            } else {
                return no_bare_results(expr);
            }
        }
    }

    /// A name behind a dot.
    fn selector(&mut self) -> Read<Arc<str>> {
        let name = match &self.peek().word {
            Word::Name(name) if !LITERALS.contains(&&**name) => name.clone(),
            Word::Quoted(name) => name.clone(),
            _ => return Err(unexpected(self.peek(), "a name; one that is none is written [\"…\"]")),
        };
        self.next += 1;
        Ok(name)
    }

    fn primary(&mut self, negative: bool) -> Read<Expr> {
        let Placed { at, word } = self.peek().clone();
        self.next += 1;
        let kind = match word {
            Word::Int(number) => {
                let number = if negative { -i128::from(number) } else { i128::from(number) };
                let message =
                    || ExpressionError::new(at, format!("the number {number} is too large for an int"));
                Kind::Int(i64::try_from(number).map_err(|_| message())?)
            }
            Word::Uint(number) => Kind::Uint(number),
            Word::Double(number) => Kind::Double(number),
            Word::Text(text) => Kind::Text(text),
            Word::Name(name) => return self.named(at, &name),
            Word::Sign("(") => {
                let inner = self.expr()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Word::Sign("[") => Kind::List(self.list("]")?),
            Word::Sign("{") if self.is_at("{") => {
                return Err(ExpressionError::new(
                    at,
                    "names are written without `$` and braces: `n1.output`",
                ));
            }
            Word::Sign("{") => Kind::Map(self.map()?),
            Word::Sign(_) | Word::Quoted(_) | Word::End => {
                self.next -= 1;
                return Err(unexpected(self.peek(), "a value"));
            }
        };
        node(at, kind)
    }

    /// Up to the closing sign; a comma may stand before it.
    fn list(&mut self, close: &str) -> Read<Vec<Expr>> {
        let mut items = Vec::new();
        while !self.take(close) {
            items.push(self.expr()?);
            if !self.take(",") {
                self.expect(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn map(&mut self) -> Read<Vec<(Expr, Expr)>> {
        let mut members = Vec::new();
        while !self.take("}") {
            let key = self.expr()?;
            self.expect(":")?;
            members.push((key, self.expr()?));
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(members)
    }

    fn named(&mut self, at: usize, name: &Arc<str>) -> Read<Expr> {
        // A literal has no fields: it is a name that is meant.
        let literal = matches!(&**name, "true" | "false" | "null");
        if RESERVED.contains(&&**name) || &**name == "in" || literal && self.is_at(".") {
            let message = format!(
                "`{name}` is a word of CEL; a node of that id is {RESULTS}[\"{name}\"], a variable metadata[\"{name}\"]"
            );
            return Err(ExpressionError::new(at, message));
        }
        match &**name {
            "true" | "false" => return node(at, Kind::Bool(&**name == "true")),
            "null" => return node(at, Kind::Null),
            _ => {}
        }
        if self.take("(") {
            return self.function(at, name);
        }
        if let Some(var) = self.vars.iter().rposition(|var| var == name) {
            return node(at, Kind::Var(var));
        }
        let path = Path { root: name.clone(), rest: Vec::new() };
        node(at, Kind::Root(Root { path, of_results: false }))
    }

    fn function(&mut self, at: usize, name: &str) -> Read<Expr> {
        if name == "has" {
            let of = self.expr()?;
            self.expect(")")?;
            let fits = match &of.kind {
                Kind::Member(..) => true,
                Kind::Root(root) => {
                    matches!(root.path.rest.last(), Some(Seg::Key(_)))
                        || root.of_results && root.path.rest.is_empty()
                }
                _ => false,
            };
            if !fits {
                let message = "`has` is asked of a field: has(a.b); of a variable: has(metadata.a)";
                return Err(ExpressionError::new(of.at, message));
            }
            return node(at, Kind::Has(Box::new(of)));
        }
        let args = self.list(")")?;
        match Function::of(name) {
            Some((function, count, true, _)) => call(at, function, count, args),
            Some((function, ..)) => Err(ExpressionError::new(
                at,
                format!("`{0}` is written behind a dot: x.{0}(…)", function.name()),
            )),
            None => Err(unknown(at, name)),
        }
    }

    fn method(&mut self, at: usize, of: Expr, name: &str) -> Read<Expr> {
        let of = no_bare_results(of)?;
        if let Some(found) = Macro::of(name) {
            return self.each(at, found, of, name);
        }
        let mut args = vec![of];
        args.extend(self.list(")")?);
        match Function::of(name) {
            Some((function, count, _, true)) => call(at, function, count, args),
            Some((function, ..)) => {
                Err(ExpressionError::new(at, format!("`{0}` is written in front: {0}(…)", function.name())))
            }
            None => Err(unknown(at, name)),
        }
    }

    fn each(&mut self, at: usize, found: Macro, over: Expr, name: &str) -> Read<Expr> {
        let Placed { at: var_at, word } = self.peek().clone();
        let var = match word {
            Word::Name(var) if !RESERVED.contains(&&*var) && !LITERALS.contains(&&*var) => var,
            _ => {
                let message =
                    format!("`{name}` takes the name of a variable and an expression: .{name}(x, x > 0)");
                return Err(ExpressionError::new(var_at, message));
            }
        };
        self.next += 1;
        self.expect(",")?;
        self.vars.push(var);
        let body = self.expr()?;
        let then = if found == Macro::Map && self.take(",") { Some(Box::new(self.expr()?)) } else { None };
        self.vars.pop();
        self.expect(")")?;
        node(at, Kind::Macro(found, Box::new(over), Box::new(body), then))
    }
}

pub(super) fn node(at: usize, kind: Kind) -> Read<Expr> {
    let mut expr = Expr { at, height: 1, kind };
    expr.height += expr.parts().iter().map(|part| part.height).max().unwrap_or(0);
    if expr.height > DEPTH { Err(too_deep(at)) } else { Ok(expr) }
}

fn call(at: usize, function: Function, count: usize, args: Vec<Expr>) -> Read<Expr> {
    if args.len() != count {
        let name = function.name();
        let message =
            format!("`{name}` is of {count} values, the one before the dot included, not {}", args.len());
        return Err(ExpressionError::new(at, message));
    }
    if let (Function::Matches, Some(Expr { at, kind: Kind::Text(pattern), .. })) = (function, args.last()) {
        functions::check_pattern(pattern).map_err(|message| ExpressionError::new(*at, message))?;
    }
    node(at, Kind::Call(function, args))
}

fn too_deep(at: usize) -> ExpressionError {
    ExpressionError::new(at, format!("the expression is nested more than {DEPTH} levels deep"))
}

fn unknown(at: usize, name: &str) -> ExpressionError {
    let message = format!(
        "there is no function `{name}`; there are size, string, int, uint, double, bool, dyn, has, startsWith, endsWith, \
         contains, matches, all, exists, exists_one, map and filter"
    );
    ExpressionError::new(at, message)
}

fn unexpected(found: &Placed, wanted: &str) -> ExpressionError {
    let what = match &found.word {
        Word::End => "the end".to_owned(),
        Word::Sign(sign) => format!("`{sign}`"),
        Word::Name(name) => format!("`{name}`"),
        Word::Quoted(name) => format!("`{name}` in backquotes"),
        Word::Text(_) => "a text".to_owned(),
        Word::Int(_) | Word::Uint(_) | Word::Double(_) => "a number".to_owned(),
    };
    ExpressionError::new(found.at, format!("here stands {what}, where {wanted} is expected"))
}
