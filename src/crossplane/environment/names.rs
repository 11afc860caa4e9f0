//! Enumerations for fields with a list of known names, such as the type of a transform. An unknown name is not a parse
//! error; the variant `Other` stores the name.

/// Declares an enumeration that is deserialized from a string and keeps unknown names. The computation of an
/// environment decides later whether an unknown name is an error. If it is, the computation fails with upstream's error
/// message.
macro_rules! names {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* $variant,)+
            /// Any other value of the parsed field. Contains the value, or an empty string if the field is missing.
            Other(String),
        }

        impl $name {
            /// Returns the text of this value, as in YAML.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)+
                    Self::Other(text) => text,
                }
            }

            /// Returns whether the parsed field was missing or empty.
            pub fn is_unset(&self) -> bool {
                self.as_str().is_empty()
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Self::$variant,)+
                    _ => Self::Other(text),
                }
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::from(text.to_owned())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: Option<String> = serde::Deserialize::deserialize(deserializer)?;
                Ok(text.unwrap_or_default().into())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::Other(String::new())
            }
        }
    };
}

pub(super) use names;

/// Deserializes the value of a field. `null` becomes the default value of the type, as in Go.
pub(super) fn or_default<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: serde::Deserialize<'de> + Default,
    D: serde::Deserializer<'de>,
{
    let value: Option<T> = serde::Deserialize::deserialize(deserializer)?;
    Ok(value.unwrap_or_default())
}
