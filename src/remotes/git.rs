//! Clones one commit of a git repository with the crate gix.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use gix::ObjectId;
use gix::progress::Discard;
use gix::remote::Direction;
use gix::remote::fetch::{Shallow, Tags};
use gix_transport::client::blocking_io::Transport;
use gix_transport::client::blocking_io::http;

use super::checkout;
use super::client::Client;
use super::transport::GitHttp;

/// The git reference of the fetched commit in the clone.
const FETCHED: &str = "refs/portcullis/fetched";
/// Maximum time of a clone. kustomize has a limit of 27 s.
const DEADLINE: Duration = Duration::from_secs(120);

/// Returns the folder in the cache that contains the files of a commit. Clones the commit if it is not cached yet. An
/// empty `reference` means the default branch.
///
/// # Errors
///
/// - The server cannot be reached, has no such commit, or needs too much time.
/// - The commit exceeds the limits for files.
/// - The cache cannot be written.
pub(super) fn fetch(url: &str, reference: &str, cache: &Path, client: &Arc<Client>) -> Result<PathBuf, String> {
    let folder = cache.join(super::hash(url.as_bytes()));
    let bare = checkout::partial(&folder.join("clone"));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let fetched = clone(url, reference, &bare, &folder, client).map_err(|error| cause(&*error));
    drop(std::fs::remove_dir_all(&bare));
    fetched
}

type Failure = Box<dyn Error + Send + Sync>;

fn clone(url: &str, reference: &str, bare: &Path, folder: &Path, client: &Arc<Client>) -> Result<PathBuf, Failure> {
    let repository = gix::init_bare(bare)?;
    let reference = if reference.is_empty() { "HEAD" } else { reference };
    let spec = format!("+{reference}:{FETCHED}");
    let remote = repository.remote_at(url)?.with_fetch_tags(Tags::None);
    let remote = remote.with_refspecs([spec.as_str()], Direction::Fetch)?;
    let (url, version) = remote.sanitized_url_and_version(Direction::Fetch)?;
    let wanted = Wanted { reference, bare, folder };
    if matches!(url.scheme, gix::url::Scheme::Http | gix::url::Scheme::Https) {
        let transport = http::Transport::new_http(GitHttp::new(Arc::clone(client)), url, version, false);
        return wanted.receive(remote.to_connection_with_transport(transport));
    }
    wanted.receive(remote.connect(Direction::Fetch)?)
}

/// A git reference whose commit is to be cloned into the cache. `bare` is the temporary bare repository for the clone.
/// `folder` is the repository's folder in the cache, which contains one subfolder for each commit.
struct Wanted<'r> {
    reference: &'r str,
    bare: &'r Path,
    folder: &'r Path,
}

impl Wanted<'_> {
    /// Resolves the reference to a commit, and clones it unless it is in the cache. Returns the commit's folder in the
    /// cache.
    fn receive<T: Transport>(&self, connection: gix::remote::Connection<'_, '_, '_, T>) -> Result<PathBuf, Failure> {
        let prepared = connection.prepare_fetch(Discard, gix::remote::ref_map::Options::default())?;
        let mapping = prepared.ref_map().mappings.first();
        let commit = mapping.and_then(|mapping| mapping.remote.peeled_id()).map(ObjectId::from);
        let commit = commit.ok_or_else(|| format!("there is no branch, tag or commit {}", self.reference))?;
        let into = self.folder.join(commit.to_string());
        if into.is_dir() {
            return Ok(into);
        }
        let depth = std::num::NonZeroU32::MIN;
        let prepared = prepared.with_shallow(Shallow::DepthAtRemote(depth));
        in_time(|is_late| prepared.receive(Discard, is_late).map(drop))?;
        checkout::commit(self.bare, &commit.to_string(), &into)?;
        Ok(into)
    }
}

/// Runs a task with a flag that becomes true at the deadline. The task must end as soon as the flag is true.
fn in_time<T>(task: impl FnOnce(&AtomicBool) -> T) -> T {
    let is_late = AtomicBool::new(false);
    thread::scope(|scope| {
        let (done, wait) = channel::<()>();
        scope.spawn(|| {
            let wait = wait;
            if wait.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout) {
                is_late.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        });
        let result = task(&is_late);
        drop(done);
        result
    })
}

/// Returns the innermost cause of an error.
fn cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
