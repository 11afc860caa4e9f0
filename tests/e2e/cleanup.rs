//! Ends the processes and deletes the temporary folders of a test run.
//!
//! Usually, `Drop` implementations do this. A signal ends the run without dropping values, so all processes and folders
//! are also registered here.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The interval for polling a process.
const PAUSE: Duration = Duration::from_millis(10);

static RESOURCES: Mutex<Resources> = Mutex::new(Resources { children: Vec::new(), folders: Vec::new() });

struct Resources {
    children: Vec<Weak<Mutex<Child>>>,
    folders: Vec<PathBuf>,
}

/// A child process. It is killed when this value is dropped, or when a signal ends the run.
pub struct Process(Arc<Mutex<Child>>);

impl Process {
    /// Starts `command`, and registers the process, so that it is killed when a signal ends the run.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut resources = lock(&RESOURCES);
        let child = Arc::new(Mutex::new(command.spawn()?));
        resources.children.retain(|child| child.strong_count() > 0);
        resources.children.push(Arc::downgrade(&child));
        Ok(Self(child))
    }

    /// Returns the exit status if the process has ended.
    pub fn status(&self) -> io::Result<Option<ExitStatus>> {
        // After a signal, the cleanup keeps this lock. So a process that the cleanup kills is not reported as a
        // failure.
        let _resources = lock(&RESOURCES);
        lock(&self.0).try_wait()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        lock(&self.0).id()
    }

    /// Waits until the process ends. Polls, because a waiting thread would keep the lock that is needed to kill the
    /// process.
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

/// Registers `folder`, so that it is deleted when a signal ends the run.
pub fn add_folder(folder: &Path) {
    lock(&RESOURCES).folders.push(folder.to_owned());
}

/// Starts a thread that waits for SIGINT, SIGTERM or SIGHUP, cleans up, and then ends the run.
pub fn clean_up_on_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let signals = {
        let _guard = runtime.enter();
        [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()]
            .map(|kind| Ok::<_, io::Error>((signal(kind)?, kind.as_raw_value())))
    };
    let signals = signals.into_iter().collect::<io::Result<Vec<_>>>()?;
    thread::spawn(move || {
        let number = runtime.block_on(wait_for_first_signal(signals));
        clean_up_and_exit(128 + number);
    });
    Ok(())
}

async fn wait_for_first_signal(signals: Vec<(Signal, i32)>) -> i32 {
    let arrivals = signals.into_iter().map(|(mut signal, number)| {
        Box::pin(async move {
            signal.recv().await;
            number
        })
    });
    futures::future::select_all(arrivals).await.0
}

/// Kills all processes, deletes all folders, and exits with `code`. Keeps [`RESOURCES`] locked, so that no other thread
/// starts a process in the meantime.
fn clean_up_and_exit(code: i32) -> ! {
    let resources = lock(&RESOURCES);
    // The processes are killed in reverse order, so that the API server ends before etcd.
    resources.children.iter().rev().filter_map(Weak::upgrade).for_each(|child| kill(&child));
    for folder in &resources.folders {
        // Errors are ignored, because the run is ending.
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

/// Locks `mutex`, even if a test panicked while it held the lock, because the processes must be killed after a panic
/// too.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
