//! Transforms as they are declared.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::names::{names, or_default};

names! {
    /// What a transform does.
    TransformType {
        /// Looks a text up.
        Map = "map",
        /// Looks for the first pattern that a text matches.
        Match = "match",
        /// Multiplies or clamps a number.
        Math = "math",
        /// Makes a text.
        String = "string",
        /// Makes a value of another type.
        Convert = "convert",
    }
}

names! {
    /// What is done to a number.
    MathType {
        /// It is multiplied; the default, natively.
        Multiply = "Multiply",
        /// It is not less than a bound.
        ClampMin = "ClampMin",
        /// It is not more than a bound.
        ClampMax = "ClampMax",
    }
}

names! {
    /// How a text is made.
    StringType {
        /// By Go's `fmt.Sprintf`; the default of the Composition's schema, but not of the engines.
        Format = "Format",
        /// By one of the conversions.
        Convert = "Convert",
        /// ConfigsWithout a prefix.
        TrimPrefix = "TrimPrefix",
        /// ConfigsWithout a suffix.
        TrimSuffix = "TrimSuffix",
        /// What a regular expression finds.
        Regexp = "Regexp",
        /// The elements of a list, with something between them.
        Join = "Join",
        /// With another text in the place of each occurrence of one; the function only.
        Replace = "Replace",
    }
}

names! {
    /// How a pattern matches.
    PatternType {
        /// It is equal.
        Literal = "literal",
        /// A regular expression is found in it.
        Regexp = "regexp",
    }
}

names! {
    /// What a match gives where no pattern matches.
    FallbackTo {
        /// The fallback value; the default.
        Value = "Value",
        /// What went in.
        Input = "Input",
    }
}

/// Something that is done to a value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Transform {
    /// Which of the others applies.
    #[serde(rename = "type")]
    pub transform_type: TransformType,
    /// Results by text.
    pub map: Option<Map<String, Value>>,
    /// Results by pattern.
    #[serde(rename = "match")]
    pub matching: Option<MatchTransform>,
    /// Arithmetic.
    pub math: Option<MathTransform>,
    /// Texts.
    pub string: Option<StringTransform>,
    /// Types.
    pub convert: Option<ConvertTransform>,
}

/// Arithmetic.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MathTransform {
    /// Which of the others applies.
    #[serde(rename = "type")]
    pub math_type: MathType,
    /// The factor.
    pub multiply: Option<i64>,
    /// The lower bound.
    pub clamp_min: Option<i64>,
    /// The upper bound.
    pub clamp_max: Option<i64>,
}

/// Results by pattern.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchTransform {
    /// The patterns, of which the first that matches counts.
    #[serde(deserialize_with = "or_default")]
    pub patterns: Vec<MatchPattern>,
    /// The result where none does; `null` counts as none, and none gives `null`.
    pub fallback_value: Value,
    /// Whether the result is what went in instead, where none does.
    pub fallback_to: FallbackTo,
}

/// A pattern and its result.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MatchPattern {
    /// How it matches. The schemas say `literal` by default, the engines know no default.
    #[serde(rename = "type")]
    pub pattern_type: PatternType,
    /// The text that matches.
    pub literal: Option<String>,
    /// The regular expression that matches.
    pub regexp: Option<String>,
    /// The result.
    pub result: Value,
}

/// Texts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StringTransform {
    /// Which of the others applies.
    #[serde(rename = "type")]
    pub string_type: StringType,
    /// A format of Go's `fmt.Sprintf`.
    pub fmt: Option<String>,
    /// The name of a conversion, such as `ToUpper`.
    pub convert: Option<String>,
    /// The prefix or suffix.
    pub trim: Option<String>,
    /// The regular expression.
    pub regexp: Option<Regexp>,
    /// What goes between the elements.
    pub join: Option<Join>,
    /// What is replaced by what.
    pub replace: Option<Replace>,
}

/// A regular expression and the group that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Regexp {
    /// The regular expression, in Go's syntax.
    #[serde(rename = "match")]
    #[serde(deserialize_with = "or_default")]
    pub pattern: String,
    /// The group; the whole match where nothing is said.
    pub group: Option<i64>,
}

/// What goes between the elements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Join {
    /// The text.
    #[serde(deserialize_with = "or_default")]
    pub separator: String,
}

/// What is replaced by what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Replace {
    /// What is searched for.
    #[serde(deserialize_with = "or_default")]
    pub search: String,
    /// What takes its place.
    #[serde(deserialize_with = "or_default")]
    pub replace: String,
}

/// Types.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConvertTransform {
    /// The type to convert to: `string`, `bool`, `int`, `int64`, `float64`, `object` or `array`.
    #[serde(deserialize_with = "or_default")]
    pub to_type: String,
    /// How it is written: `none`, `quantity` or `json`; `none` where nothing is said.
    pub format: Option<String>,
}
