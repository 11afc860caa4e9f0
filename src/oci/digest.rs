//! Computes and checks digests, in the form `sha256:` and 64 hexadecimal digits.

use ring::digest::{SHA256, digest};

/// Returns the SHA-256 digest of `bytes`: `sha256:` and 64 hexadecimal digits.
pub fn of(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

/// Returns the SHA-256 hash of `bytes` in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a text is a valid SHA-256 digest. Other digest algorithms are not supported.
pub fn is_valid(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
