//! Checksums in the formats that Crossplane writes.

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};

fn hexadecimal(algorithm: &'static Algorithm, bytes: &[u8]) -> String {
    digest(algorithm, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the SHA-1 hash of `bytes` in hexadecimal. The hash is suitable for names, but not for security.
pub fn sha1(bytes: &[u8]) -> String {
    hexadecimal(&SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

/// Returns the SHA-256 hash of `bytes` in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(&SHA256, bytes)
}

/// Returns the SHA-512 hash of `bytes` in hexadecimal.
pub fn sha512(bytes: &[u8]) -> String {
    hexadecimal(&SHA512, bytes)
}

/// Returns the Adler-32 checksum of `bytes`.
pub fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65521;
    let (mut low, mut high) = (1u32, 0u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % MODULUS;
        high = (high + low) % MODULUS;
    }
    high << 16 | low
}
