//! What models of an agent are told, one file a purpose; each has placeholders that the agent's graph fills.
//!
//! What they quote was written by users, models and tools, and so is hostile: it stands behind all instructions, between lines that
//! say where it begins and ends, and each text says that it is no instruction.

/// What a model is told for one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Its name: that of its file without the ending.
    pub name: &'static str,
    /// The text, a template.
    pub text: &'static str,
    /// The placeholders that are filled.
    pub fields: &'static [&'static str],
}

macro_rules! prompts {
    ($($(#[$doc:meta])* $name:ident = $file:literal: [$($field:literal),*];)*) => {
        $($(#[$doc])*
        pub const $name: Prompt = Prompt {
            name: $file,
            text: include_str!(concat!("prompts/", $file, ".md")),
            fields: &[$($field),*],
        };)*
        /// All of them.
        pub const ALL: &[Prompt] = &[$($name),*];
    };
}

prompts! {
    /// Which tools the next round has (A-01).
    MANAGER = "manager": ["query", "tools", "count", "response", "report"];
    /// Whether the task has been done (A-02).
    JUDGE = "judge": ["query", "response"];
    /// What an attempt has come to that was not enough (A-03).
    FAILURE_REPORT = "failure_report": ["query", "response", "reason"];
    /// The beginning of the executor's thread (A-09).
    EXECUTOR = "executor": ["guidance", "response", "query"];
    /// What a coder is asked to write (A-07, A-08).
    CODER = "coder": ["name", "description", "input_schema", "output_schema", "allowed", "errors"];
    /// What a coder is asked to mend (A-15).
    MEND = "mend": ["brief", "errors"];
    /// What a coder is asked to make of several tools (V-08).
    MERGE = "merge": ["name", "brief", "errors"];
    /// Which tools do the same (V-06).
    TOOL_CLUSTER = "tool_cluster": ["tools"];
    /// What became of a call (A-14).
    TOOL_CLASS = "tool_class": ["question"];
    /// Whether two outputs are as good as each other (A-15).
    EQUIVALENCE = "equivalence": ["question"];
    /// A part of a thread in short (A-12).
    SUMMARY = "summary": ["query", "history"];
    /// What stands for an output that is too long (A-11).
    LONG_OUTPUT = "long_output": ["query", "output"];
    /// What is handed on when the steps are used up (A-05).
    HAND_OVER = "hand_over": ["query", "history"];
    /// The end of the task (A-24).
    FINAL_ANSWER = "final_answer": ["query", "findings"];
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_engine::template::Template;

    /// The placeholders of each are those that are filled, once each; and what is quoted stands last, between its two lines.
    #[test]
    fn each_prompt_has_its_placeholders_behind_all_instructions() {
        assert_eq!(ALL.len(), 14);
        for prompt in ALL {
            let template = Template::parse(prompt.text).unwrap_or_else(|e| panic!("{}: {e:?}", prompt.name));
            let found: Vec<String> = template.placeholders().map(|found| found.raw.to_string()).collect();
            let wanted: Vec<String> = prompt.fields.iter().map(|field| format!("{{{{{field}}}}}")).collect();
            assert_eq!(found, wanted, "{}", prompt.name);
            let quoted = prompt.text.find("\n<").unwrap();
            assert!(
                prompt.text[..quoted].contains("material")
                    || prompt.text[..quoted].contains("is none to you"),
                "{}",
                prompt.name
            );
            for part in prompt.text[quoted..].trim().split("\n\n") {
                let (open, rest) = part.split_once(">\n").unwrap();
                assert!(rest.ends_with(&format!("\n</{}>", &open[1..])), "{}: {part}", prompt.name);
            }
        }
    }

    /// A-08: the coder is told the whole contract.
    #[test]
    fn a08_the_coder_is_told_the_contract() {
        for word in [
            "__TOOL_META__",
            "`name`",
            "`description`",
            "`dependencies`",
            "`output_params`",
            "`effects`",
            "network",
            "read_paths",
            "write_paths",
            "`env`",
            "`timeout`",
            "class InputModel(BaseModel)",
            "def run(input_model)",
            "```python",
            "30 seconds",
        ] {
            assert!(CODER.text.contains(word), "{word}");
        }
    }
}
