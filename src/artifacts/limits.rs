//! The limits of fetched and cached artifacts, each with its reason.

use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Maximum size of a compressed artifact, in bytes. An artifact is the archive that Flux creates for a source, such as
/// a GitRepository. By default, Flux leaves image files and archive files of the source out of it. The artifacts of the
/// largest public repositories are smaller than 20 MB.
pub const PACKED: u64 = 50 * MIB;
/// Maximum total size of the files that are unpacked from one archive, in bytes. The largest known archives have less
/// than 20 MB, and text compresses to about a fifth of its size. So an archive with more content is an archive bomb, or
/// contains more than configuration.
pub const UNPACKED: u64 = 96 * MIB;
/// Maximum number of files, links and folders in an unpacked tree. A repository with 1,000 kustomization roots and
/// 3,000 kustomize Components has about 20,000 files.
pub const ENTRIES: usize = 50_000;
/// Maximum total size of archives that are being downloaded or unpacked, in bytes. There is room for one archive of the
/// largest size, or for a hundred typical archives.
pub const ARRIVING: u64 = 64 * MIB;
/// Maximum total size of cached trees, in bytes. This is enough for one tree of the largest size, or for about thirty
/// trees of 5,000 files. The memory limit of the chart is enough for the cached trees, the archives that are being
/// downloaded, and one tree that is being unpacked.
pub const KEPT_TREES: u64 = 96 * MIB;
/// Maximum number of unpacked artifacts in the cache. An artifact is the archive that Flux creates for a source, such
/// as a GitRepository. A cluster usually has fewer than 256 sources.
pub const MAX_TREES: usize = 256;
/// Maximum total size of the cached results of checks of kustomize trees, in bytes. A result without findings takes a
/// few hundred bytes.
pub const KEPT_VERDICTS: u64 = 16 * MIB;
/// Maximum number of cached results of checks of kustomize trees. This is enough for ten revisions of 5,000
/// Kustomizations.
pub const MAX_VERDICTS: usize = 50_000;
/// Maximum number of bytes that are read to check one kustomization root. Parsed YAML can take [`PARSED`] times the
/// size of its text. Only one root is checked at a time, so this memory is needed once.
pub const READ: u64 = 8 * MIB;
/// Maximum ratio of the size of parsed YAML to the size of its text. The worst case is a list of short words, which
/// takes about 160 bytes for every four bytes of text.
pub const PARSED: u64 = 40;
/// Maximum total size of a tree's kustomization files, in bytes. The parsed files of a larger tree are not cached. The
/// files of 1,000 kustomization roots take about 300 KiB.
pub const SHARED: u64 = MIB;
/// Maximum size in bytes of one cache for the build results of bases. A base is a kustomization that another
/// kustomization refers to. Each combination of a kustomize tree and a system that builds it, such as Flux, has its own
/// cache.
///
/// The size of a result is the memory that its build counted against the build's memory limit. One cache is enough for
/// the results of a few thousand objects.
pub const BASES: u64 = 8 * MIB;
/// Maximum total size of the caches for build results of bases. A base is a kustomization that another kustomization
/// refers to. The limit is enough for two caches, because each cache counts with its maximum size [`BASES`]. More
/// caches would rarely help, because few trees in a cluster are used by many Kustomizations.
pub const KEPT_BASES: u64 = 2 * BASES;
/// Maximum number of concurrent fetches from one host. The limit keeps a slow host from delaying the fetches from other
/// hosts.
pub const FETCHES: usize = 4;
/// Maximum number of running or waiting fetches. A cluster usually has fewer than 256 sources, and each source has one
/// artifact at a time.
pub const MAX_FETCHES: usize = 256;
/// Maximum number of recently failed fetches that are cached. Each failure has a message of a few hundred bytes.
pub const MAX_FAILURES: usize = 1_000;
/// Timeout of a fetch. It is many times longer than source-controller needs for the largest artifact.
pub const FETCH: Duration = Duration::from_secs(30);
/// Timeout of connecting to the host of an artifact. Within a cluster, connecting takes a millisecond.
pub const CONNECT: Duration = Duration::from_secs(5);
/// Time for which a failed fetch of an artifact is not retried. During this time, callers get the error of the failed
/// fetch at once.
pub const FAILED: Duration = Duration::from_secs(5);

/// The limits of fetched and cached artifacts. [`Limits::default`] uses the constants of this module.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Maximum size of an archive, in bytes.
    pub packed: u64,
    /// Maximum size of an unpacked tree, in bytes.
    pub unpacked: u64,
    /// Maximum number of files, links and folders in a tree.
    pub entries: usize,
    /// Maximum total size of archives that are being downloaded or unpacked, in bytes.
    pub arriving: u64,
    /// Maximum total size of cached trees, in bytes.
    pub kept_trees: u64,
    /// Maximum number of cached trees.
    pub max_trees: usize,
    /// Maximum total size of the cached check results, in bytes. Each entry of the cache is the result of one check of
    /// a kustomize tree.
    pub kept_verdicts: u64,
    /// Maximum number of cached results of checks of kustomize trees.
    pub max_verdicts: usize,
    /// Maximum number of bytes that are read from a tree to check one kustomization root.
    pub read: u64,
    /// Maximum number of concurrent fetches from one host.
    pub fetches: usize,
    /// Maximum number of running or waiting fetches of artifacts.
    pub max_fetches: usize,
    /// Maximum number of recently failed fetches that are cached.
    pub max_failures: usize,
    /// Timeout of fetching one artifact.
    pub fetch: Duration,
    /// Timeout of connecting to the host of an artifact.
    pub connect: Duration,
    /// Time for which a failed fetch is not retried. During this time, callers immediately get the error of the failed
    /// fetch.
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
            max_trees: MAX_TREES,
            kept_verdicts: KEPT_VERDICTS,
            max_verdicts: MAX_VERDICTS,
            read: READ,
            fetches: FETCHES,
            max_fetches: MAX_FETCHES,
            max_failures: MAX_FAILURES,
            fetch: FETCH,
            connect: CONNECT,
            failed: FAILED,
        }
    }
}
