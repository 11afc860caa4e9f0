//! Reproduces Crossplane's own validation of patches and transforms. This validation returns the first error, in the
//! form of a Kubernetes field error.
//!
//! Source: `Validate` of the types in Crossplane 1.17.6, and `validate.go` of function-patch-and-transform 0.10.8. The
//! computation of environments needs this validation, because function-patch-and-transform validates some transforms
//! only when it runs them. The rules of Portcullis have a separate validation, which reports all errors, including some
//! that Crossplane does not detect.

use std::fmt;

use super::{
    Combine, ConvertTransform, MatchPattern, MatchTransform, MathTransform, MathType, Patch, PatchType, PatternType,
    Presence, Profile, StringTransform, StringType, Transform, TransformType,
};
use crate::go::{quote, regexp};

/// A field error, as Kubernetes reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The path of the field, relative to the validated value.
    pub field: String,
    /// The invalid value; `None` if a required value is missing.
    pub value: Option<String>,
    /// The reason why the field is invalid.
    pub detail: String,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, detail } = self;
        match value {
            None => write!(f, "{field}: Required value: {detail}"),
            Some(value) => write!(f, "{field}: Invalid value: {}: {detail}", quote(value)),
        }
    }
}

impl Invalid {
    fn required(field: &str, detail: impl Into<String>) -> Option<Self> {
        Some(Self { field: field.to_owned(), value: None, detail: detail.into() })
    }

    fn wrong(field: &str, value: &str, detail: &str) -> Option<Self> {
        Some(Self { field: field.to_owned(), value: Some(value.to_owned()), detail: detail.to_owned() })
    }

    /// Prepends a field to the path of the error.
    #[must_use]
    pub fn within(mut self, field: &str) -> Self {
        self.field = format!("{field}.{}", self.field);
        self
    }
}

/// Returns the first error in `environment.patches`; `None` if there is none. `profile` says whether the checks are
/// those of Crossplane or of function-patch-and-transform. The path of the error is relative to `environment`.
pub fn invalid_environment_patches(patches: &[Patch], profile: Profile) -> Option<Invalid> {
    let mut patches = patches.iter().enumerate();
    patches.find_map(|(at, patch)| {
        let kind = patch.kind();
        let is_allowed = !matches!(
            kind,
            PatchType::PatchSet
                | PatchType::CombineFromEnvironment
                | PatchType::CombineToEnvironment
                | PatchType::Other(_)
        );
        if profile == Profile::Function && !is_allowed {
            let field = format!("patches[{at}][type]");
            return Invalid::wrong(&field, kind.as_str(), "invalid environment patch type");
        }
        Some(patch.invalid(profile)?.within(&format!("patches[{at}]")))
    })
}

impl Patch {
    /// Returns the first error in this patch; `None` if there is none. `profile` selects the checks: those of
    /// Crossplane, or those of function-patch-and-transform.
    pub fn invalid(&self, profile: Profile) -> Option<Invalid> {
        let kind = self.kind();
        let name = kind.as_str();
        let must_be_set = |field: &str| Invalid::required(field, format!("{field} must be set for patch type {name}"));
        let from = self.from_field_path.as_deref();
        let to = self.to_field_path.as_deref();
        // Crossplane up to 1.17 accepts an empty path.
        let is_missing = |path: Option<&str>| path.is_none_or(|path| path.is_empty() && profile == Profile::Function);
        match &kind {
            PatchType::FromCompositeFieldPath
            | PatchType::ToCompositeFieldPath
            | PatchType::FromEnvironmentFieldPath
            | PatchType::ToEnvironmentFieldPath => {
                if is_missing(from) {
                    return must_be_set("fromFieldPath");
                }
            }
            PatchType::CombineFromComposite
            | PatchType::CombineToComposite
            | PatchType::CombineFromEnvironment
            | PatchType::CombineToEnvironment => match &self.combine {
                None => return must_be_set("combine"),
                Some(_) if is_missing(to) => return must_be_set("toFieldPath"),
                // The function validates nothing else in combining patches.
                Some(combine) if profile == Profile::Function => {
                    return combine.invalid().map(|invalid| invalid.within("combine"));
                }
                Some(_) => {}
            },
            PatchType::PatchSet if self.patch_set_name.is_none() => return must_be_set("patchSetName"),
            PatchType::PatchSet => {}
            PatchType::Other(_) => return Invalid::wrong("type", name, "unknown patch type"),
        }
        self.invalid_details(profile)
    }

    fn invalid_details(&self, profile: Profile) -> Option<Invalid> {
        for (at, transform) in self.transforms.iter().enumerate() {
            if let Some(invalid) = transform.invalid(profile) {
                return Some(invalid.within(&format!("transforms[{at}]")));
            }
        }
        let policy = self.policy.as_ref().filter(|_| profile == Profile::Function)?;
        if let Err(name) = self.merge_options(profile) {
            return Invalid::wrong("policy.toFieldPathPolicy", name, "unknown toFieldPathPolicy");
        }
        match &policy.from_field_path {
            Presence::Other(name) if !name.is_empty() => {
                Invalid::wrong("policy.fromFieldPathPolicy", name, "unknown fromFieldPathPolicy")
            }
            _ => None,
        }
    }
}

impl Combine {
    fn invalid(&self) -> Option<Invalid> {
        match self.strategy.as_str() {
            "string" if self.string.is_none() => {
                return Invalid::required("string", "string must be set for combine strategy string");
            }
            "string" => {}
            "" => return Invalid::required("strategy", "a combine strategy must be provided"),
            other => return Invalid::wrong("strategy", other, "unknown strategy type"),
        }
        if self.variables.is_empty() {
            return Invalid::required("variables", "at least one variable must be provided");
        }
        let at = self.variables.iter().position(|variable| variable.from_field_path.is_empty())?;
        let detail = "fromFieldPath must be set for each combine variable";
        Invalid::required(&format!("variables[{at}].fromFieldPath"), detail)
    }
}

impl Transform {
    /// Returns the first error in this transform; `None` if there is none. `profile` selects the checks: those of
    /// Crossplane, or those of function-patch-and-transform.
    pub fn invalid(&self, profile: Profile) -> Option<Invalid> {
        let name = self.transform_type.as_str();
        let missing = || Invalid::required(name, format!("given transform type {name} requires configuration"));
        let invalid = match &self.transform_type {
            TransformType::Math => self.math.as_ref().map(|math| math.invalid(profile)),
            TransformType::Map => self.map.as_ref().map(|map| match map.is_empty() {
                true => {
                    Invalid::required("pairs", "at least one pair must be specified if a map transform is specified")
                }
                false => None,
            }),
            TransformType::Match => self.matching.as_ref().map(MatchTransform::invalid),
            TransformType::String => self.string.as_ref().map(|string| string.invalid(profile)),
            TransformType::Convert => self.convert.as_ref().map(ConvertTransform::invalid),
            TransformType::Other(_) => return Invalid::wrong("type", name, "unknown transform type"),
        };
        match invalid {
            None => missing(),
            Some(invalid) => invalid.map(|invalid| invalid.within(name)),
        }
    }
}

impl MathTransform {
    pub(super) fn invalid(&self, profile: Profile) -> Option<Invalid> {
        if self.math_type.is_unset() && profile == Profile::Function {
            return Invalid::required("type", "math transform type is required");
        }
        let missing = |field: &str, words: &str| {
            Invalid::required(field, format!("must specify a value if a {words} math transform is specified"))
        };
        match self.kind() {
            MathType::Multiply if self.multiply.is_none() => missing("multiply", "multiply"),
            MathType::ClampMin if self.clamp_min.is_none() => missing("clampMin", "clamp min"),
            MathType::ClampMax if self.clamp_max.is_none() => missing("clampMax", "clamp max"),
            MathType::Other(name) => Invalid::wrong("type", &name, "unknown math transform type"),
            _ => None,
        }
    }
}

impl MatchTransform {
    fn invalid(&self) -> Option<Invalid> {
        if self.patterns.is_empty() {
            let detail = "at least one pattern must be specified if a match transform is specified";
            return Invalid::required("patterns", detail);
        }
        let mut patterns = self.patterns.iter().enumerate();
        patterns.find_map(|(at, pattern)| Some(pattern.invalid()?.within(&format!("patterns[{at}]"))))
    }
}

impl MatchPattern {
    fn invalid(&self) -> Option<Invalid> {
        match (&self.pattern_type, &self.literal, &self.regexp) {
            (PatternType::Regexp, _, None) => Invalid::required("regexp", "regexp pattern type requires a regexp"),
            (PatternType::Regexp, _, Some(pattern)) => invalid_regexp("regexp", pattern),
            (PatternType::Other(name), _, _) if !name.is_empty() => {
                Invalid::wrong("type", name, "unknown pattern type")
            }
            (_, None, _) => Invalid::required("literal", "literal pattern type requires a literal"),
            _ => None,
        }
    }
}

fn invalid_regexp(field: &str, pattern: &str) -> Option<Invalid> {
    regexp::compile(pattern).err().and_then(|_| Invalid::wrong(field, pattern, "invalid regexp"))
}

impl StringTransform {
    fn invalid(&self, profile: Profile) -> Option<Invalid> {
        match &self.string_type {
            StringType::Other(name) if name.is_empty() && profile == Profile::Function => {
                Invalid::required("type", "string transform type is required")
            }
            StringType::Replace if profile == Profile::Native117 => self.unknown(),
            StringType::Other(name) if !name.is_empty() => self.unknown(),
            StringType::Format | StringType::Other(_) => match self.fmt {
                None => Invalid::required("fmt", "format transform requires a format"),
                Some(_) => None,
            },
            StringType::Convert if self.convert.is_none() => {
                Invalid::required("convert", "convert transform requires a conversion type")
            }
            StringType::TrimPrefix | StringType::TrimSuffix if self.trim.is_none() => {
                Invalid::required("trim", "trim transform requires a trim value")
            }
            StringType::Join if self.join.is_none() => Invalid::required("join", "join transform requires a join"),
            StringType::Regexp => match &self.regexp {
                None => Invalid::required("regexp", "regexp transform requires a regexp"),
                Some(regexp) if regexp.pattern.is_empty() => {
                    Invalid::required("regexp.match", "regexp transform requires a match")
                }
                Some(regexp) => invalid_regexp("regexp.match", &regexp.pattern),
            },
            StringType::Replace => match &self.replace {
                None => Invalid::required("replace", "replace transform requires a replace"),
                Some(replace) if replace.search.is_empty() => {
                    Invalid::required("replace.search", "replace transform requires a search")
                }
                Some(_) => None,
            },
            _ => None,
        }
    }

    fn unknown(&self) -> Option<Invalid> {
        Invalid::wrong("type", self.string_type.as_str(), "unknown string transform type")
    }
}

impl ConvertTransform {
    pub(super) fn invalid(&self) -> Option<Invalid> {
        if !["none", "quantity", "json"].contains(&self.format()) {
            return Invalid::wrong("format", self.format(), "invalid format");
        }
        match ["string", "bool", "int", "int64", "float64", "object", "array"].contains(&self.to_type.as_str()) {
            true => None,
            false => Invalid::wrong("toType", &self.to_type, "invalid type"),
        }
    }
}
