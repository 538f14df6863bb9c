//! Variables of expressions: what placeholders see, and how it is looked into as CEL does.

use super::ast::Root;
use super::eval::{Evaluation, Stop};
use super::value::Val;
use crate::template::{Miss, Path, Placeholder, Seg, Unresolved, classify, member, start};
use serde_json::Value;

impl<'a> Evaluation<'a> {
    /// The value of a path.
    pub(super) fn root(&mut self, at: usize, root: &'a Root) -> Result<Val<'a>, Stop<'a>> {
        let (value, rest) = self.start(root).map_err(|miss| Stop::Missing { at, root, miss })?;
        self.walk(at, root, value, rest).map(Val::from)
    }

    /// Whether the last name of a path is there; what is before it has to be.
    pub(super) fn has_root(&mut self, at: usize, root: &'a Root) -> Result<bool, Stop<'a>> {
        let known = |id: &str| self.layers.is_step(id);
        let whole = match classify(&root.path, known) {
            crate::template::Root::StepOutput { rest, .. }
            | crate::template::Root::Metadata { rest, .. }
            | crate::template::Root::Inputs { rest, .. }
            | crate::template::Root::Name { rest, .. } => rest.is_empty(),
        };
        if whole {
            return Ok(self.start(root).is_ok());
        }
        let (value, rest) = self.start(root).map_err(|miss| Stop::Missing { at, root, miss })?;
        // `error` and `errors` of a node are no part of its output.
        let Some((last, before)) = rest.split_last() else { return Ok(true) };
        let Seg::Key(last) = last else { return Ok(false) };
        match self.walk(at, root, value, before)? {
            Value::Object(members) => Ok(member(members, last).is_some()),
            other => Err(Stop::wrong(at, format!("`has` asks for a field of {}", Val::from(other).kind()))),
        }
    }

    fn start(&self, root: &'a Root) -> Result<(&'a Value, &'a [Seg]), Miss> {
        let layers = self.layers;
        if root.of_results && !layers.is_step(&root.path.root) {
            return Err(Miss::UnknownStep);
        }
        start(&classify(&root.path, |id| layers.is_step(id)), layers)
    }

    fn walk(
        &mut self,
        at: usize,
        root: &'a Root,
        mut value: &'a Value,
        rest: &'a [Seg],
    ) -> Result<&'a Value, Stop<'a>> {
        for (depth, seg) in rest.iter().enumerate() {
            self.pay(1)?;
            let found = match (value, seg) {
                (Value::Object(members), Seg::Key(key)) => member(members, key),
                (Value::Array(items), Seg::Index(index)) => {
                    usize::try_from(*index).ok().and_then(|index| items.get(index))
                }
                _ => None,
            };
            value = found.ok_or(Stop::Missing { at, root, miss: Miss::NoField { depth } })?;
        }
        Ok(value)
    }

    /// Why a path has no value, for people.
    pub(super) fn missing(&self, at: usize, root: &Root, miss: Miss) -> String {
        let Path { root: name, rest } = &root.path;
        let raw = if root.of_results {
            let rest: String = rest.iter().map(Seg::to_string).collect();
            format!("results[{}]{rest}", Value::from(&**name))
        } else {
            root.path.to_string()
        };
        let placeholder = Placeholder { raw: raw.into(), path: root.path.clone(), offset: at };
        Unresolved::explain(&placeholder, miss, self.layers).to_string()
    }
}
