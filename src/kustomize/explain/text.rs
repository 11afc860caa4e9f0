//! Formats the steps of a kustomize build as text.

use super::{Step, StepKind};

impl Step {
    /// Formats the step and its parts as an indented tree. Each line contains one step and its effects.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        self.write_text(&mut text, "", "");
        text
    }

    fn write_text(&self, text: &mut String, own: &str, below: &str) {
        text.push_str(&format!("{own}{}\n", self.line()));
        for (at, part) in self.parts.iter().enumerate() {
            let last = at + 1 == self.parts.len();
            let (branch, trunk) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            part.write_text(text, &format!("{below}{branch}"), &format!("{below}{trunk}"));
        }
    }

    fn line(&self) -> String {
        let name = self.name();
        let mut line = match self.kind {
            StepKind::File => name,
            kind => format!("{name} ({})", kind.as_str()),
        };
        if !self.list.is_empty() {
            line = format!("{}: {line}", self.list);
        }
        if self.misplaced {
            line.push_str("  ✗ misplaced");
        }
        if !self.adds.is_empty() {
            line.push_str(&format!("  + {}", self.adds.join(", ")));
        }
        line
    }
}
