//! Placeholder to be written next.
