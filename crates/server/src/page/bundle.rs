//! The page's modules as one script, and the page as one file (S-31), with its styles and a run as data. Each module is a function, in the
//! order in which they need each other: a browser loads no module from a file beside a page on disk, and many slowly from anywhere.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The module that begins everything.
const FIRST: &str = "js/app.js";
/// The styles, in their order.
const STYLES: [&str; 3] = ["css/base.css", "css/run.css", "css/parts.css"];

/// The page with a run inside: `run` is JSON. `file` has the texts of the page's files.
///
/// # Errors
/// A module asks for one that there is not, or says something in a way that is not read here: a bug, which a test finds.
pub(super) fn html<'f>(file: impl Fn(&str) -> Option<&'f str>, run: &str) -> Result<String, String> {
    // Nothing in a script or its data may end the element that it is in.
    let script = script(&file)?.replace("</script", "<\\/script");
    let data = run.replace('<', "\\u003c");
    let styles: String = STYLES.iter().filter_map(|name| file(name)).collect::<Vec<_>>().join("\n");
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'",
        digest(&script),
        digest(&styles)
    );
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>Selvedge</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>{styles}</style>\n</head>\n\
         <body><div id=\"app\"></div><noscript>This page needs JavaScript.</noscript>\n\
         <script type=\"application/json\" id=\"run-inside\">{data}</script>\n\
         <script type=\"module\">{script}</script>\n</body>\n</html>\n"
    ))
}

/// All modules as one script.
///
/// # Errors
/// As above.
pub(super) fn script<'f>(file: impl Fn(&str) -> Option<&'f str>) -> Result<String, String> {
    let mut modules = Modules { file: &file, done: BTreeMap::new(), script: String::new() };
    modules.add(FIRST, 0)?;
    Ok(modules.script)
}

/// As a policy has it.
fn digest(text: &str) -> String {
    base64(&Sha256::digest(text.as_bytes()))
}

fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let sign = SIGNS.get((bits >> (18 - 6 * at) & 63) as usize).copied().unwrap_or(b'A');
            text.push(if at > chunk.len() { '=' } else { char::from(sign) });
        }
    }
    text
}

/// Modules that are put into one script.
struct Modules<'a, F> {
    file: &'a F,
    /// Which number a module has; none while what it needs is put in.
    done: BTreeMap<String, Option<usize>>,
    script: String,
}

impl<'f, F: Fn(&str) -> Option<&'f str>> Modules<'_, F> {
    /// Puts a module in, behind those that it needs, and says its number.
    fn add(&mut self, name: &str, depth: usize) -> Result<usize, String> {
        match self.done.get(name) {
            Some(Some(number)) => return Ok(*number),
            Some(None) => return Err(format!("{name} needs itself")),
            None if depth > 64 => return Err(format!("{name} is needed too deep")),
            None => self.done.insert(name.to_owned(), None),
        };
        let text = (self.file)(name).ok_or_else(|| format!("there is no module {name}"))?;
        let (mut body, mut exports) = (String::new(), Vec::new());
        for line in text.lines().filter(|line| !line.starts_with("//# sourceMappingURL")) {
            let mut rest = line;
            while rest.starts_with("import ") || rest.starts_with("import{") {
                let (import, behind) = rest.split_once(';').ok_or_else(|| unread(name, line))?;
                self.import(name, import, depth, &mut body)?;
                rest = behind;
            }
            export(name, rest, &mut body, &mut exports)?;
        }
        let number = self.done.values().flatten().count();
        self.done.insert(name.to_owned(), Some(number));
        let _ = writeln!(
            self.script,
            "const M{number} = (() => {{\n{body}return {{ {} }};\n}})();",
            exports.join(", ")
        );
        Ok(number)
    }

    /// `import { a, b as c } from './x.js'` and `import a from './x.js'`.
    fn import(&mut self, of: &str, import: &str, depth: usize, body: &mut String) -> Result<(), String> {
        let (what, from) =
            import.trim_start_matches("import").rsplit_once("from").ok_or_else(|| unread(of, import))?;
        let path = from.trim().trim_matches(['\'', '"']);
        let number = self.add(&beside(of, path), depth + 1)?;
        let what = what.trim();
        let names = match what.strip_prefix('{').and_then(|what| what.strip_suffix('}')) {
            Some(list) => {
                named(list).map(|(name, local)| format!("{name}: {local}")).collect::<Vec<_>>().join(", ")
            }
            None => format!("default: {what}"),
        };
        let _ = writeln!(body, "const {{ {names} }} = M{number};");
        Ok(())
    }
}

/// A line without what it exports, which is noted.
fn export(of: &str, line: &str, body: &mut String, exports: &mut Vec<String>) -> Result<(), String> {
    if let Some((before, list)) = line
        .split_once("export{")
        .or_else(|| line.split_once("export {").filter(|(before, _)| before.is_empty()))
    {
        let (list, behind) = list.split_once('}').ok_or_else(|| unread(of, line))?;
        exports.extend(named(list).map(|(local, name)| format!("{name}: {local}")));
        let _ = writeln!(body, "{before}{}", behind.trim_start_matches(';'));
        return Ok(());
    }
    if let Some((before, value)) = line.split_once("export default ") {
        exports.push("default: exported".to_owned());
        let _ = writeln!(body, "{before}const exported = {value}");
        return Ok(());
    }
    let Some(said) = line.strip_prefix("export ") else {
        let _ = writeln!(body, "{line}");
        return Ok(());
    };
    let plain = said.strip_prefix("async ").unwrap_or(said);
    let name = ["const ", "let ", "function ", "class "].iter().find_map(|kind| plain.strip_prefix(kind));
    let name =
        name.and_then(|name| name.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').next());
    let name = name.filter(|name| !name.is_empty()).ok_or_else(|| unread(of, line))?;
    exports.push(name.to_owned());
    let _ = writeln!(body, "{said}");
    Ok(())
}

/// The names of `{a, b as c}`, each with the one behind `as`, which is itself where there is none.
fn named(list: &str) -> impl Iterator<Item = (&str, &str)> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(|name| name.split_once(" as ").map_or((name, name), |(a, b)| (a.trim(), b.trim())))
}

/// A path from the folder of a module.
fn beside(of: &str, path: &str) -> String {
    let mut parts: Vec<&str> = of.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn unread(of: &str, line: &str) -> String {
    format!("{of} says what is not read here: {}", line.chars().take(120).collect::<String>())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn made(files: &[(&str, &str)]) -> Result<String, String> {
        let files: BTreeMap<String, String> =
            files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect();
        html(|name| files.get(name).map(String::as_str), "{\"a\":\"</script><b>\"}")
    }

    #[test]
    fn modules_are_functions_in_the_order_in_which_they_need_each_other() {
        let made = made(&[
            (
                "js/app.js",
                "import { b as c } from './b.js';\nimport d from '../v/d.js';\nexport const e = c + d;",
            ),
            ("js/b.js", "import d from '../v/d.js';\nexport async function b() {}\nexport { b as x };"),
            ("v/d.js", "var n=1;export default function(s){}\n//# sourceMappingURL=d.js.map"),
        ])
        .unwrap();
        let at = |text: &str| made.find(text).unwrap_or_else(|| panic!("{text} in {made}"));
        assert!(at("var n=1;const exported = function(s){}") < at("const { default: d } = M0;"));
        assert!(at("return { b, x: b };") < at("const { b: c } = M1;"));
        assert!(at("const e = c + d;") < at("return { e };"));
    }

    #[test]
    fn what_is_not_there_is_said() {
        assert!(made(&[("js/app.js", "import { a } from './a.js';")]).unwrap_err().contains("js/a.js"));
        assert!(made(&[("js/app.js", "import { a } from './app.js';")]).unwrap_err().contains("itself"));
        assert!(made(&[("js/app.js", "export const { a } = b;")]).unwrap_err().contains("not read"));
    }

    #[test]
    fn data_ends_no_element() {
        let made = made(&[("js/app.js", "const x = '</script>';")]).unwrap();
        assert_eq!(made.matches("</script>").count(), 2, "{made}");
        assert!(made.contains("\\u003c/script>\\u003cb>"), "{made}");
    }

    #[test]
    fn digests_are_as_policies_have_them() {
        assert_eq!(digest(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
