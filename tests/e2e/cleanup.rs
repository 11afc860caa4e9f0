//! Cleans up processes and temporary folders that must not outlive a run.
//!
//! Their owners clean up on drop. A signal ends the run without drops, so all resources are registered here too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Interval for polling a process.
const PAUSE: Duration = Duration::from_millis(10);

static RESOURCES: Mutex<Resources> = Mutex::new(Resources { children: Vec::new(), folders: Vec::new() });

struct Resources {
    children: Vec<Weak<Mutex<Child>>>,
    folders: Vec<PathBuf>,
}

/// A process that never outlives the run. It is killed on drop.
pub struct Process(Arc<Mutex<Child>>);

impl Process {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut cleanup = lock(&RESOURCES);
        let child = Arc::new(Mutex::new(command.spawn()?));
        cleanup.children.retain(|child| child.strong_count() > 0);
        cleanup.children.push(Arc::downgrade(&child));
        Ok(Self(child))
    }

    /// Returns how it ended, if it has.
    pub fn status(&self) -> io::Result<Option<ExitStatus>> {
        // After a signal, nobody gets past this point, so a killed process is not reported as a failure.
        let _no_signal = lock(&RESOURCES);
        lock(&self.0).try_wait()
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        lock(&self.0).id()
    }

    /// Waits for its end by polling, so that a signal can kill it in between.
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
    lock(&RESOURCES).folders.push(folder.to_owned());
}

/// Cleans up on SIGINT, SIGTERM and SIGHUP before the run ends.
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
    let cleanup = lock(&RESOURCES);
    // The latest first: the API server before its etcd.
    cleanup.children.iter().rev().filter_map(Weak::upgrade).for_each(|child| kill(&child));
    for folder in &cleanup.folders {
        // The run is over and cannot do more than try.
        let _ = fs::remove_dir_all(folder);
    }
    std::process::exit(code)
}

fn kill(child: &Mutex<Child>) {
    let mut child = lock(child);
    // Fails only for a process that has already ended.
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns the lock, also when a test panicked while it held it: a process can be killed all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
