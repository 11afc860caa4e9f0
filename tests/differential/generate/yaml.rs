//! Prints YAML values, each in one of several equivalent notations.

use crate::dice::Dice;

/// A YAML value that a kustomization file or a manifest can contain.
#[derive(Debug, Clone)]
pub enum Yaml {
    /// A scalar, list or mapping in YAML notation, which is printed unchanged.
    Raw(String),
    /// A string, which is printed with quotes if it needs them.
    Text(String),
    List(Vec<Yaml>),
    /// A mapping. Keeps the order of its entries, and can contain duplicate keys.
    Map(Vec<(String, Yaml)>),
}

/// Returns a string value.
pub fn text(text: impl Into<String>) -> Yaml {
    Yaml::Text(text.into())
}

/// Returns a value whose text is printed unchanged.
pub fn raw(text: impl Into<String>) -> Yaml {
    Yaml::Raw(text.into())
}

/// Returns a list of strings.
pub fn texts<I: IntoIterator<Item = S>, S: Into<String>>(items: I) -> Yaml {
    Yaml::List(items.into_iter().map(text).collect())
}

/// Returns a mapping.
pub fn map<const N: usize>(entries: [(&str, Yaml); N]) -> Yaml {
    Yaml::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

impl Yaml {
    /// Returns the mapping with an additional entry at its end. A value that is not a mapping is returned unchanged.
    pub fn with(mut self, key: &str, value: Yaml) -> Self {
        if let Yaml::Map(entries) = &mut self {
            entries.push((key.to_owned(), value));
        }
        self
    }

    /// Serializes the value as a YAML document with random styles, such as block or flow.
    pub fn document(&self, dice: &mut Dice) -> String {
        match self {
            Yaml::Map(entries) if entries.is_empty() => "{}\n".to_owned(),
            Yaml::List(items) if items.is_empty() => "[]\n".to_owned(),
            _ => self.block(dice, 0).trim_start_matches('\n').to_owned(),
        }
    }

    /// Writes this value in a randomly chosen YAML style, for use after `key:` or `-`. Some styles need several lines.
    fn block(&self, dice: &mut Dice, indent: usize) -> String {
        let margin = " ".repeat(indent);
        match self {
            Yaml::Map(entries) if !entries.is_empty() && (indent == 0 || dice.chance(70)) => {
                let lines =
                    entries.iter().map(|(key, value)| format!("{margin}{key}:{}", value.block(dice, indent + 2)));
                format!("\n{}", lines.collect::<String>())
            }
            Yaml::List(items) if !items.is_empty() && (indent == 0 || dice.chance(60)) => {
                let lines = items.iter().map(|item| format!("{margin}-{}", item.item(dice, indent + 2)));
                format!("\n{}", lines.collect::<String>())
            }
            Yaml::Text(text) if text.contains('\n') && !text.starts_with([' ', '\n']) && dice.chance(85) => {
                let lines = text.lines().map(|line| format!("{margin}{line}\n")).collect::<String>();
                format!(" |{}\n{lines}", if text.ends_with('\n') { "" } else { "-" })
            }
            other => format!(" {}\n", other.flow()),
        }
    }

    /// Returns the text of a list item after its dash. A mapping or a list begins on the line of the dash.
    fn item(&self, dice: &mut Dice, indent: usize) -> String {
        let block = self.block(dice, indent);
        match self {
            Yaml::Map(_) | Yaml::List(_) if block.starts_with('\n') => format!(" {}", block.trim_start()),
            _ => block,
        }
    }

    fn flow(&self) -> String {
        match self {
            Yaml::Raw(raw) => raw.clone(),
            Yaml::Text(text) if is_plain(text) => text.clone(),
            Yaml::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Yaml::List(items) => {
                format!("[{}]", items.iter().map(Yaml::flow).collect::<Vec<_>>().join(", "))
            }
            Yaml::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| format!("{key}: {}", value.flow()));
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// Returns whether the text can be printed without quotes: YAML 1.1 parses it as the same string in every position.
fn is_plain(text: &str) -> bool {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '.' && text.contains('/'))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
        && !words.contains(&text.to_ascii_lowercase().as_str())
}
