//! What must not outlive a run: processes and temporary folders.
//!
//! Each is cleared away by its owner's `Drop`. A signal ends the run without drops, so all are on a list here too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// How often a process that is waited for is looked at.
const PAUSE: Duration = Duration::from_millis(10);

static LITTER: Mutex<Litter> = Mutex::new(Litter { children: Vec::new(), folders: Vec::new() });

struct Litter {
    children: Vec<Weak<Mutex<Child>>>,
    folders: Vec<PathBuf>,
}

/// A process that never outlives the run. Dropping it kills it and waits until it is gone.
pub struct Process(Arc<Mutex<Child>>);

impl Process {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut litter = lock(&LITTER);
        let child = Arc::new(Mutex::new(command.spawn()?));
        litter.children.retain(|child| child.strong_count() > 0);
        litter.children.push(Arc::downgrade(&child));
        Ok(Self(child))
    }

    /// How it ended, if it has.
    pub fn status(&self) -> io::Result<Option<ExitStatus>> {
        // Once a signal has come nobody gets past this, to report as a failure what the signal killed.
        let _no_signal = lock(&LITTER);
        lock(&self.0).try_wait()
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        lock(&self.0).id()
    }

    /// Waits for its end, in looks rather than in one wait, so that a signal can kill it meanwhile.
    pub fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            match self.status()? {
                Some(status) => return Ok(status),
                None => thread::sleep(PAUSE),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        kill(&self.0);
    }
}

/// Has `folder` deleted when a signal ends the run.
pub fn add_folder(folder: &Path) {
    lock(&LITTER).folders.push(folder.to_owned());
}

/// From now on SIGINT, SIGTERM and SIGHUP clear everything away before they end the run.
pub fn clear_on_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let signals = {
        let _inside = runtime.enter();
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .map(|kind| Ok::<_, io::Error>((signal(kind)?, kind.as_raw_value())))
    };
    let signals = signals.into_iter().collect::<io::Result<Vec<_>>>()?;
    thread::spawn(move || {
        let number = runtime.block_on(first(signals));
        clear_and_exit(128 + number);
    });
    Ok(())
}

async fn first(signals: Vec<(Signal, i32)>) -> i32 {
    let arrivals = signals.into_iter().map(|(mut signal, number)| {
        Box::pin(async move {
            signal.recv().await;
            number
        })
    });
    futures::future::select_all(arrivals).await.0
}

/// Keeps the list locked to the end, so that nothing is started meanwhile.
fn clear_and_exit(code: i32) -> ! {
    let litter = lock(&LITTER);
    // The latest first: the API server before its etcd.
    litter.children.iter().rev().filter_map(Weak::upgrade).for_each(|child| kill(&child));
    for folder in &litter.folders {
        // The run is over and cannot do more than try.
        let _ = fs::remove_dir_all(folder);
    }
    std::process::exit(code)
}

fn kill(child: &Mutex<Child>) {
    let mut child = lock(child);
    // Either fails only for a process that is gone already.
    let _ = child.kill();
    let _ = child.wait();
}

/// The lock, also when a trial panicked while it held it: a process can be killed all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
