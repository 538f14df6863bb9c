//! What to do about a module that a tool imports and that is not there: it may be a package, or a file beside the
//! tool's that is none of its helper modules.

use crate::python::helpers::is_tool;
use std::ffi::OsStr;
use std::path::Path;

/// How many letters a name may be off.
const SLIP: usize = 2;

/// What to do about a module that is not there, in the words of a failed import; `None` if that is not what is wrong. `source` is
/// the tool's file.
pub(super) fn missing_module(why: &str, source: &Path) -> Option<String> {
    if why.contains("attempted relative import") {
        return Some(
            "a tool is in no package: `import NAME` or `from NAME import …` imports the file NAME.py beside it".to_owned(),
        );
    }
    let (_, rest) = why.split_once("No module named '")?;
    let (name, _) = rest.split_once('\'')?;
    let (module, inner) = name.split_once('.').unwrap_or((name, ""));
    let folder = source.parent().unwrap_or(Path::new("."));
    let package = || {
        format!(
            "add it to `dependencies` in __TOOL_META__: [\"{module}\"], or the package that has it where that has another name"
        )
    };
    Some(beside(module, inner, folder).unwrap_or_else(|| match near(module, folder, source) {
        Some(near) => format!("{near}.py lies beside the tool: is `{near}` meant? Else {}", package()),
        None => package(),
    }))
}

/// What lies beside the tool under this name, and why it is not what is imported.
fn beside(module: &str, inner: &str, folder: &Path) -> Option<String> {
    let file = folder.join(format!("{module}.py"));
    if let Ok(text) = std::fs::read(&file) {
        return Some(match (is_tool(&text), inner) {
            (true, _) => format!(
                "{module}.py beside it is a tool, and no tool imports another: put what both need into a file without \
                 __TOOL_META__, as _{module}_shared.py"
            ),
            (false, "") => format!(
                "{module}.py beside it is there for it where a line of the tool says `import {module}` or `from {module} import …`"
            ),
            (false, _) => format!(
                "{module}.py beside it is one module, with no `{inner}` in it: `from {module} import …`"
            ),
        });
    }
    folder.join(module).is_dir().then(|| {
        let last = inner.rsplit('.').next().filter(|last| !last.is_empty()).unwrap_or("NAME");
        format!(
            "{module} beside it is a folder, and helper modules are files: put {last}.py beside the tool, and write `import \
             {last}` or `from {last} import …`"
        )
    })
}

/// The helper module beside the tool whose name is nearly this one.
fn near(module: &str, folder: &Path, source: &Path) -> Option<String> {
    let names = folder.read_dir().ok()?.flatten().filter_map(|entry| {
        let path = entry.path();
        let named = path.extension() == Some(OsStr::new("py")) && path != source;
        named.then(|| path.file_stem()?.to_str().map(str::to_owned)).flatten()
    });
    let off = |name: &String| strsim::levenshtein(&name.to_lowercase(), &module.to_lowercase());
    let near = names.map(|name| (off(&name), name)).filter(|(off, name)| {
        *off <= SLIP.min(module.chars().count() / 3) && !is_tool_at(&folder.join(format!("{name}.py")))
    });
    near.min().map(|(_, name)| name)
}

fn is_tool_at(path: &Path) -> bool {
    !path.is_file() || std::fs::read(path).is_ok_and(|text| is_tool(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// what lies beside the tool is told of before packages are.
    #[test]
    fn missing_modules_are_told_with_the_way_out() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        write("helpers.py", "");
        write("other.py", "x = 1\n__TOOL_META__ = {}\n");
        write("tool.py", "__TOOL_META__ = {}\n");
        std::fs::create_dir(folder.path().join("pkg")).unwrap();
        let hint = |module: &str| {
            let why = format!("ModuleNotFoundError: No module named '{module}'");
            missing_module(&why, &folder.path().join("tool.py")).unwrap()
        };
        for (module, words) in [
            ("requests", "add it to `dependencies`"),
            ("helpes", "is `helpers` meant? Else add it to `dependencies`"),
            ("Helpers", "is `helpers` meant?"),
            ("othr", "add it to `dependencies`"),
            ("other", "other.py beside it is a tool"),
            ("helpers.deep", "is one module, with no `deep`"),
            ("helpers", "where a line of the tool says `import helpers`"),
            ("pkg", "put NAME.py beside the tool"),
            ("pkg.sub.mod", "put mod.py beside the tool"),
        ] {
            assert!(hint(module).contains(words), "{module}: {}", hint(module));
        }
        let relative = "ImportError: attempted relative import with no known parent package";
        assert!(missing_module(relative, Path::new("t.py")).unwrap().contains("in no package"));
        assert_eq!(missing_module("ValueError: no", Path::new("t.py")), None);
    }
}
