//! The fields of transforms in the patches of a Composition.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::names::{names, or_default};

names! {
    /// The type of a transform.
    TransformType {
        /// Looks up a string in a map.
        Map = "map",
        /// Returns the result of the first pattern that a string matches.
        Match = "match",
        /// Multiplies or clamps a number.
        Math = "math",
        /// The type `string`: the transform creates a string from its input, for example with a format.
        String = "string",
        /// Converts a value to another type.
        Convert = "convert",
    }
}

names! {
    /// The operation of a `math` transform.
    MathType {
        /// Multiplies by a factor. This is the default of Crossplane up to 1.17.
        Multiply = "Multiply",
        /// Applies a lower bound: a number below the bound becomes the bound.
        ClampMin = "ClampMin",
        /// Applies an upper bound: a number above the bound becomes the bound.
        ClampMax = "ClampMax",
    }
}

names! {
    /// The operation of a `string` transform.
    StringType {
        /// Formats with Go's `fmt.Sprintf`. The schema of Compositions sets this type by default. The code of
        /// Crossplane up to 1.17 and of function-patch-and-transform has no default.
        Format = "Format",
        /// Applies a conversion such as `ToUpper` or `ToBase64`.
        Convert = "Convert",
        /// Removes a prefix.
        TrimPrefix = "TrimPrefix",
        /// Removes a suffix.
        TrimSuffix = "TrimSuffix",
        /// Extracts a match of a regular expression.
        Regexp = "Regexp",
        /// Joins the elements of a list with a separator.
        Join = "Join",
        /// Replaces each occurrence of a string. Only function-patch-and-transform supports this operation.
        Replace = "Replace",
    }
}

names! {
    /// How a pattern is compared with the input: as a literal or as a regular expression.
    PatternType {
        /// Matches if the input equals the literal.
        Literal = "literal",
        /// Matches if the regular expression matches the input.
        Regexp = "regexp",
    }
}

names! {
    /// The result of a `match` transform if no pattern matches.
    FallbackTo {
        /// Returns the fallback value. This is the default.
        Value = "Value",
        /// Returns the input of the transform unchanged.
        Input = "Input",
    }
}

/// A transform, which converts the value that a patch copies.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Transform {
    /// The type of the transform. It determines which of the other fields is used.
    #[serde(rename = "type")]
    pub transform_type: TransformType,
    /// The pairs of a `map` transform: the result for each input string.
    pub map: Option<Map<String, Value>>,
    /// The settings of a `match` transform.
    #[serde(rename = "match")]
    pub matching: Option<MatchTransform>,
    /// The settings of a `math` transform.
    pub math: Option<MathTransform>,
    /// The settings of a `string` transform.
    pub string: Option<StringTransform>,
    /// The settings of a `convert` transform.
    pub convert: Option<ConvertTransform>,
}

/// The settings of a `math` transform, which multiplies or clamps a number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MathTransform {
    /// The operation. It determines which of the other fields is used.
    #[serde(rename = "type")]
    pub math_type: MathType,
    /// The factor of the operation `Multiply`.
    pub multiply: Option<i64>,
    /// The lower bound of the operation `ClampMin`.
    pub clamp_min: Option<i64>,
    /// The upper bound of the operation `ClampMax`.
    pub clamp_max: Option<i64>,
}

/// The settings of a `match` transform, which returns the result of the first matching pattern.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct MatchTransform {
    /// The patterns. The first pattern that matches determines the result.
    #[serde(deserialize_with = "or_default")]
    pub patterns: Vec<MatchPattern>,
    /// The fallback value: the result if no pattern matches and `fallback_to` is [`FallbackTo::Value`]. The default is
    /// `null`.
    pub fallback_value: Value,
    /// The result of the transform if no pattern matches: the fallback value or the input.
    pub fallback_to: FallbackTo,
}

/// A pattern of a `match` transform, and the result if it matches.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct MatchPattern {
    /// Whether the input is compared with a literal or with a regular expression. The API schemas set the default
    /// `literal`. The code of Crossplane up to 1.17 and of function-patch-and-transform has no default.
    #[serde(rename = "type")]
    pub pattern_type: PatternType,
    /// The string to compare with, for patterns of type `literal`.
    pub literal: Option<String>,
    /// The regular expression to match, for patterns of type `regexp`.
    pub regexp: Option<String>,
    /// The result of the transform if the pattern matches.
    pub result: Value,
}

/// The settings of a `string` transform, which creates a string.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StringTransform {
    /// The operation. It determines which of the other fields is used.
    #[serde(rename = "type")]
    pub string_type: StringType,
    /// The format of the operation `Format`, for Go's `fmt.Sprintf`.
    pub fmt: Option<String>,
    /// The conversion of the operation `Convert`, such as `ToUpper`.
    pub convert: Option<String>,
    /// The prefix or suffix to remove, for the operations `TrimPrefix` and `TrimSuffix`.
    pub trim: Option<String>,
    /// The regular expression of the operation `Regexp`.
    pub regexp: Option<Regexp>,
    /// The settings of the operation `Join`.
    pub join: Option<Join>,
    /// The strings to search for and to insert, for the operation `Replace`.
    pub replace: Option<Replace>,
}

/// The settings of the operation `Regexp` of a `string` transform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Regexp {
    /// The regular expression, in Go's syntax.
    #[serde(rename = "match")]
    #[serde(deserialize_with = "or_default")]
    pub pattern: String,
    /// The number of the capture group to extract. By default, the whole match is extracted.
    pub group: Option<i64>,
}

/// The settings of the operation `Join` of a `string` transform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Join {
    /// The separator between the elements of the list.
    #[serde(deserialize_with = "or_default")]
    pub separator: String,
}

/// The settings of the operation `Replace` of a `string` transform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Replace {
    /// The string to search for.
    #[serde(deserialize_with = "or_default")]
    pub search: String,
    /// The string that replaces each occurrence of `search`.
    #[serde(deserialize_with = "or_default")]
    pub replace: String,
}

/// The settings of a `convert` transform, which converts a value to another type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ConvertTransform {
    /// The type to convert to: `string`, `bool`, `int`, `int64`, `float64`, `object` or `array`.
    #[serde(deserialize_with = "or_default")]
    pub to_type: String,
    /// The format of the input: `none`, `quantity` or `json`. The default is `none`.
    pub format: Option<String>,
}
