//! Reads files on all cores, and returns results in the order of the files.

use std::iter;
use std::num::NonZero;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::ManifestError;
use super::read::{Found, Object, files_in, objects};

/// Maximum number of finished batches that wait to be stored. This number keeps all threads busy while one file is
/// stored. The batches take less than 1 MiB.
const BATCHES: usize = 32;

/// Total size of files, in bytes, below which a single thread reads them. Starting more threads would take longer than
/// reading these files.
const SMALL: u64 = 256 * 1024;

/// Returns whether the files are so small that several threads would not read them faster. Returns false if the size of
/// a file is unknown.
pub(super) fn are_small(files: &[Found]) -> bool {
    let size = |(path, _): &Found| path.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
    files.iter().try_fold(0, |sum: u64, file| Some(sum.saturating_add(size(file)?))).is_some_and(|sum| sum < SMALL)
}

/// A batch of results that a thread has computed from objects of one file.
struct Batch<T> {
    made: T,
    /// The errors of the file. Only the last batch of a file contains them.
    end: Option<Vec<ManifestError>>,
}

/// What a thread reports after it has processed an object.
pub(super) struct Processed {
    /// The length of the object's text in bytes, as a [`Take`](super::read::Take) returns it.
    pub(super) length: usize,
    /// Whether the batch with the result is full.
    pub(super) is_full: bool,
}

/// Reads every object in files and folders, and returns the errors.
///
/// Threads call `make` for each object. `make` adds its result to a batch. It receives the same text, and returns the
/// same errors, as a [`Take`](super::read::Take). The calling thread passes the batches to `take`, in the order of the
/// files. If the total size of the files is small, the calling thread also reads the files.
pub(super) fn each_in_order<P: AsRef<Path>, T: Default + Send>(
    paths: &[P],
    make: impl Fn(Object<'_>, &mut T) -> Result<Processed, String> + Sync,
    mut take: impl FnMut(T),
) -> Vec<ManifestError> {
    let files = files_in(paths);
    if are_small(&files) {
        return files.into_iter().flat_map(|file| read(file, &make, &mut take)).collect();
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(files.len());
    let (files, (order, readers)) = (Mutex::new(files.into_iter()), channel());
    thread::scope(|scope| {
        let batches: Vec<_> = (0..threads)
            .map(|number| {
                let (sender, batches) = sync_channel(BATCHES.div_ceil(threads));
                let (make, (done, is_done)) = (&make, channel::<()>());
                let mut files = next_files(number, &files, order.clone());
                scope.spawn(move || {
                    files.try_for_each(|file| send(file, make, &sender));
                    drop((files, sender));
                    // When a thread ends, the allocator returns its memory, except for batches that still wait. So the
                    // thread waits until all are stored, when the channel is closed.
                    let _ = is_done.recv();
                });
                (batches, done)
            })
            .collect();
        drop(order);
        let in_order = readers.into_iter().filter_map(|number| batches.get(number));
        in_order.flat_map(|(batches, _)| receive(batches, &mut take)).collect()
    })
}

/// Returns an iterator over the files that the thread with this number reads. The threads share `files`, so a thread
/// that is faster reads more files. When a thread takes a file, its number is sent to `order`. So the numbers in
/// `order` say which threads read the files, in the order of the files.
fn next_files(
    number: usize,
    files: &Mutex<impl Iterator<Item = Found>>,
    order: Sender<usize>,
) -> impl Iterator<Item = Found> {
    iter::from_fn(move || {
        // Locked until the number is sent, so that no other thread sends its number between.
        let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
        let file = files.next()?;
        order.send(number).ok()?;
        Some(file)
    })
}

/// Reads the objects of a file on the calling thread, and calls `make` for each of them. Passes the results of `make`
/// to `take` in batches, each with the results for several objects. Returns the errors of the file.
fn read<T: Default>(
    file: Found,
    make: &impl Fn(Object<'_>, &mut T) -> Result<Processed, String>,
    take: &mut impl FnMut(T),
) -> Vec<ManifestError> {
    let mut made = T::default();
    let errors = objects(file, &mut |object| {
        let Processed { length, is_full } = make(object, &mut made)?;
        if is_full {
            take(std::mem::take(&mut made));
        }
        Ok(length)
    });
    take(made);
    errors
}

/// Reads the objects of a file, and calls `make` for each of them. Sends the results of `make` to the calling thread in
/// batches, each with the results for several objects. Returns `None` if the receiver was dropped.
fn send<T: Default>(
    file: Found,
    make: &impl Fn(Object<'_>, &mut T) -> Result<Processed, String>,
    sender: &SyncSender<Batch<T>>,
) -> Option<()> {
    let mut made = T::default();
    let errors = objects(file, &mut |object| {
        let Processed { length, is_full } = make(object, &mut made)?;
        if is_full {
            let batch = Batch { made: std::mem::take(&mut made), end: None };
            sender.send(batch).map_err(|_| "the receiver of its objects has stopped".to_owned())?;
        }
        Ok(length)
    });
    sender.send(Batch { made, end: Some(errors) }).ok()
}

/// Receives the batches that another thread computes from the objects of one file, and passes them to `take`. Returns
/// the errors of the file.
fn receive<T>(batches: &Receiver<Batch<T>>, take: &mut impl FnMut(T)) -> Vec<ManifestError> {
    while let Ok(Batch { made, end }) = batches.recv() {
        take(made);
        if let Some(errors) = end {
            return errors;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    fn objects_arrive_in_the_order_of_files() {
        for (count, is_small) in [(50, false), (21, true)] {
            arrive_in_the_order_of_files(count, is_small);
        }
    }

    fn arrive_in_the_order_of_files(count: usize, is_small: bool) {
        let folder = tempfile::tempdir().unwrap();
        for file in 0..count {
            let objects = (0..file * 7).map(|at| {
                let padding = "x".repeat(if is_small { 10 } else { 1_000 });
                format!(r#"{{"apiVersion":"v1","kind":"Thing","number":"{file:02}-{at:03}","padding":"{padding}"}}"#)
            });
            fs::write(folder.path().join(format!("{file:02}.json")), objects.collect::<String>()).unwrap();
        }
        fs::write(folder.path().join("20.yaml"), "a: [\n").unwrap();
        fs::write(folder.path().join("10.yaml"), "b: ]\n").unwrap();
        assert_eq!(are_small(&files_in(&[folder.path()])), is_small);
        let number = |object: Object<'_>| object.text.split('"').nth(11).map(str::to_owned);
        let mut found = Vec::new();
        let add = |object: Object<'_>, numbers: &mut Vec<String>| {
            let object = object.alone()?;
            numbers.extend(number(object));
            Ok(Processed { length: object.text.len(), is_full: numbers.len() >= 64 })
        };
        let errors = each_in_order(&[folder.path()], add, |numbers| found.extend(numbers));
        let all = (0..count).flat_map(|file| (0..file * 7).map(move |at| format!("{file:02}-{at:03}")));
        assert_eq!(found, all.collect::<Vec<_>>());
        let names: Vec<_> = errors.iter().map(|error| error.name.rsplit('/').next().unwrap()).collect();
        assert_eq!(names, ["10.yaml", "20.yaml"]);
        assert!(each_in_order::<&Path, ()>(&[], |_, ()| Err(String::new()), |()| ()).is_empty());
    }

    #[test]
    fn other_threads_continue_while_one_is_slow() {
        let threads = thread::available_parallelism().map_or(1, NonZero::get);
        let folder = tempfile::tempdir().unwrap();
        let padding = "x".repeat(usize::try_from(SMALL).unwrap());
        for file in 0..=threads {
            let object = format!(r#"{{"apiVersion":"v1","kind":"Thing","number":{file},"padding":"{padding}"}}"#);
            fs::write(folder.path().join(format!("{file:03}.json")), object).unwrap();
        }
        let (sender, is_last_read) = channel();
        let is_last_read = Mutex::new(is_last_read);
        let last = format!("\"number\":{threads},");
        let make = |object: Object<'_>, _: &mut ()| {
            let length = object.text.len();
            if object.text.contains(&last) {
                sender.send(()).unwrap();
            } else if object.text.contains("\"number\":0,") && threads > 1 {
                // Fails if the last file waits for the thread that reads the first one.
                is_last_read
                    .lock()
                    .unwrap()
                    .recv_timeout(Duration::from_secs(60))
                    .map_err(|error| error.to_string())?;
            }
            Ok(Processed { length, is_full: false })
        };
        assert!(each_in_order(&[folder.path()], make, |()| ()).is_empty());
    }
}
