//! The file in a coder's reply (A-28): what stands in its one ```` ```python ```` fence, and nothing else.

use crate::python::MAX_FILE;

/// How the language of a file may be called.
const LANGUAGES: [&str; 3] = ["python", "py", "python3"];
/// What a coder does about a reply that has no file in it.
const HOW: &str =
    "answer with the whole file, in one block that begins with a line ```python and ends with a line ```";

/// The file that a model answers with.
///
/// # Errors
/// What is wrong with the reply, in words for the model.
pub fn file_of(reply: &str) -> Result<String, String> {
    let mut lines = reply.split_inclusive('\n');
    let mut file: Option<String> = None;
    while let Some(line) = lines.next() {
        let Some(fence) = Fence::opened(line) else { continue };
        if file.is_some() {
            return Err(format!(
                "the answer has more than one block: {HOW}, and nothing else between such lines. If a line of the file begins with \
                 ```, the block has to begin and end with ````"
            ));
        }
        if !LANGUAGES.iter().any(|known| known.eq_ignore_ascii_case(fence.language)) {
            let said = match fence.language {
                "" => "does not say that it is Python".to_owned(),
                other => format!("is of the language \"{}\"", shown(other)),
            };
            return Err(format!("the block in the answer {said}: {HOW}"));
        }
        let mut text = String::new();
        loop {
            match lines.next() {
                None => return Err(format!("the block in the answer has no end: {HOW}")),
                Some(line) if fence.is_closed_by(line) => break,
                Some(line) => text.push_str(fence.within(line)),
            }
        }
        file = Some(text);
    }
    let Some(file) = file else { return Err(format!("there is no file in the answer: {HOW}")) };
    of_size(&file)?;
    Ok(file)
}

/// Refuses what has no size of a tool's file (A-08).
///
/// # Errors
/// It is empty, or too large, in words for a coder.
pub fn of_size(file: &str) -> Result<(), String> {
    if file.trim().is_empty() {
        return Err("the file is empty: write the whole tool".to_owned());
    }
    if file.len() as u64 > MAX_FILE {
        return Err(format!(
            "the file has {} bytes, and a tool may have {MAX_FILE}: write code, and let the input bring the data",
            file.len()
        ));
    }
    Ok(())
}

/// The line that a block begins with, as Markdown has it.
struct Fence<'a> {
    indent: usize,
    ticks: usize,
    language: &'a str,
}

impl<'a> Fence<'a> {
    fn opened(line: &'a str) -> Option<Self> {
        let (indent, ticks, rest) = taken(line)?;
        // Code within a line may begin with as many.
        (!rest.contains('`')).then(|| Self {
            indent,
            ticks,
            language: rest.split_whitespace().next().unwrap_or(""),
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        taken(line).is_some_and(|(_, ticks, rest)| ticks >= self.ticks && rest.trim().is_empty())
    }

    /// A line of the block without the indentation that the block itself has.
    fn within<'l>(&self, line: &'l str) -> &'l str {
        let spaces = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        line.get(spaces..).unwrap_or(line)
    }
}

/// The spaces before a line's backticks, their number, and what comes behind them, if it begins with at least three.
fn taken(line: &str) -> Option<(usize, usize, &str)> {
    let rest = line.trim_start_matches(' ');
    let indent = line.len().saturating_sub(rest.len());
    let behind = rest.trim_start_matches('`');
    let ticks = rest.len().saturating_sub(behind.len());
    (indent < 4 && ticks >= 3).then_some((indent, ticks, behind))
}

/// A word of the coder's as it may be shown.
fn shown(word: &str) -> String {
    word.chars().take(30).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a28_the_file_is_what_stands_in_the_one_fence() {
        for reply in [
            "```python\nx = 1\n```",
            "Here it is:\n\n```python\nx = 1\n```\nIt counts `x`.",
            "```py\nx = 1\n```\n",
            "```Python title=\"x.py\"\nx = 1\n````  \n",
            "  ```python3\n  x = 1\n  ```",
        ] {
            assert_eq!(file_of(reply).as_deref(), Ok("x = 1\n"), "{reply}");
        }
        // Lines like that may be in the file.
        let file = "x = '''\n```\ny\n```python\n'''\n";
        assert_eq!(file_of(&format!("````python\n{file}````")).as_deref(), Ok(file));
        assert_eq!(file_of("```python\r\nx = 1\r\n```\r\n").as_deref(), Ok("x = 1\r\n"));
        // What only looks like one in a line is none.
        assert_eq!(
            file_of("use ```x``` so:\n```a``` b\n```python\n    ```\n```").as_deref(),
            Ok("    ```\n")
        );
    }

    #[test]
    fn a28_a_reply_without_one_file_says_what_to_do() {
        let large = format!("```python\n{}\n```", "#".repeat(9 << 20));
        for (reply, why) in [
            ("", "no file"),
            ("I can't do that.", "no file"),
            ("x = 1", "no file"),
            ("```python\nx = 1\n", "no end"),
            ("```python\nx = 1\n``` end", "no end"),
            ("```\nx = 1\n```", "does not say"),
            ("```json\n{}\n```", "\"json\""),
            ("```python\n```", "empty"),
            ("```python\n  \n```", "empty"),
            ("```python\nx = 1\n```\n```python\ny = 1\n```", "more than one"),
            ("```python\nx = 1\n```\nRun it:\n```bash\nx\n```", "more than one"),
            ("```python\nx = '''\n```\n'''\n```", "more than one"),
            ("```\u{1b}[31m\nx\n```", "\\u{1b}"),
            (&large, "9437185 bytes"),
        ] {
            let error = file_of(reply).unwrap_err();
            assert!(error.contains(why) && error.contains(':'), "{why}: {error}");
            assert!(error.len() < 500, "{error}");
        }
    }

    /// Whatever is between the lines comes out as it went in, and nothing of it ends the block.
    #[test]
    fn a28_random_lines_come_out_whole() {
        use std::fmt::Write as _;
        let parts = ["```", "````", "`", "python", " ", "x", "\n", "\n\n", "é", "\t"];
        let mut seed = 7_u64;
        for _ in 0..2000 {
            let mut text = String::new();
            for _ in 0..20 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let _ = write!(text, "{}", parts[(seed >> 33) as usize % parts.len()]);
            }
            let _ = file_of(&text);
            let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2);
            let fence = "`".repeat(longest + 1);
            let whole = format!("{fence}python\n{text}x\n{fence}\n");
            assert_eq!(file_of(&whole).unwrap(), format!("{text}x\n"));
        }
    }
}
