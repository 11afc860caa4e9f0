//! Every bound of what is fetched and kept, each with the reason for its size.

use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Flux leaves images and archives out of its artifacts; those of the largest public repositories are below 20 MB.
pub const PACKED: u64 = 50 * MIB;
/// Text shrinks to about a fifth; beyond this an archive is a bomb or no configuration.
pub const UNPACKED: u64 = 96 * MIB;
/// A repository of 1 000 roots and 3 000 components has some 20 000 files.
pub const ENTRIES: usize = 50_000;
/// Two of the largest archives while they are on their way, or a hundred usual ones.
pub const ARRIVING: u64 = 64 * MIB;
/// One of the largest trees, or some thirty of 5 000 files; together with what arrives, and one tree that is being
/// unpacked, below what the chart gives a pod.
pub const KEPT_TREES: u64 = 96 * MIB;
/// More sources than a cluster has.
pub const MOST_TREES: usize = 256;
/// A verdict without findings takes some hundred bytes.
pub const KEPT_VERDICTS: u64 = 16 * MIB;
/// Ten revisions of 5 000 Kustomizations.
pub const MOST_VERDICTS: usize = 50_000;
/// What is read to judge one root, one at a time: YAML takes up to [`PARSED`] times its size once it is parsed.
pub const READ: u64 = 8 * MIB;
/// A list of short words takes some 160 bytes for every four of its text.
pub const PARSED: u64 = 40;
/// Kustomization files that are kept as they were parsed, for all roots of a tree; those of 1 000 roots have some 300 KiB.
pub const SHARED: u64 = MIB;
/// Fetches from one host at a time: a slow one keeps no others waiting.
pub const FETCHES: usize = 4;
/// Fetches that run or wait; further ones are not begun.
pub const MOST_FETCHES: usize = 256;
/// What source-controller on the same network needs for the largest artifact, many times over.
pub const FETCH: Duration = Duration::from_secs(30);
/// A connection within a cluster is made in a millisecond.
pub const CONNECT: Duration = Duration::from_secs(5);
/// For so long a fetch that failed is not tried again: what asks for it is answered at once.
pub const FAILED: Duration = Duration::from_secs(5);

/// The bounds. [`Limits::default`] takes the constants of this module.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of an archive.
    pub packed: u64,
    /// Bytes of a tree.
    pub unpacked: u64,
    /// Files, links and folders of a tree.
    pub entries: usize,
    /// Bytes of all archives that are arriving.
    pub arriving: u64,
    /// Bytes of all trees that are kept.
    pub kept_trees: u64,
    /// Trees that are kept.
    pub most_trees: usize,
    /// Bytes of all verdicts that are kept.
    pub kept_verdicts: u64,
    /// Verdicts that are kept.
    pub most_verdicts: usize,
    /// Bytes that are read to judge one root.
    pub read: u64,
    /// Fetches from one host at a time.
    pub fetches: usize,
    /// Fetches that run or wait.
    pub most_fetches: usize,
    /// For one fetch.
    pub fetch: Duration,
    /// For a connection.
    pub connect: Duration,
    /// How long a fetch that failed is not tried again.
    pub failed: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            packed: PACKED,
            unpacked: UNPACKED,
            entries: ENTRIES,
            arriving: ARRIVING,
            kept_trees: KEPT_TREES,
            most_trees: MOST_TREES,
            kept_verdicts: KEPT_VERDICTS,
            most_verdicts: MOST_VERDICTS,
            read: READ,
            fetches: FETCHES,
            most_fetches: MOST_FETCHES,
            fetch: FETCH,
            connect: CONNECT,
            failed: FAILED,
        }
    }
}
