//! Processes items in parallel and returns the results in order.

use std::sync::mpsc::sync_channel;
use std::thread;

/// Maximum number of results that a thread computes before the first of them is used. With this number, threads rarely
/// wait, and the results need little memory.
const AHEAD: usize = 16;
/// Minimum number of batches for each thread, so that all threads end at about the same time.
const BATCHES: usize = 16;
/// Maximum number of threads. More threads would not read files faster.
const MAX_THREADS: usize = 8;

/// Runs `work` on all items in parallel. Calls `take` with the index and the result of each item, in order. Does not
/// use threads if there are only a few items.
pub(super) fn in_order<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync, mut take: impl FnMut(usize, R)) {
    let threads = if items.len() <= AHEAD { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    if threads == 1 {
        items.iter().map(work).enumerate().for_each(|(number, result)| take(number, result));
        return;
    }
    let (threads, work) = (threads.min(MAX_THREADS), &work);
    // Results are sent in batches, because waking the receiver for each result costs as much as the work on a small
    // item.
    let size = (items.len() / (threads * BATCHES)).clamp(1, AHEAD / 2);
    thread::scope(|scope| {
        let begin = |first| {
            let (send, receive) = sync_channel(AHEAD / size - 1);
            scope.spawn(move || {
                let mut batches = items.chunks(size).skip(first).step_by(threads);
                // An error means that the receiver is gone.
                batches.try_for_each(|batch| send.send(batch.iter().map(work).collect::<Vec<R>>()))
            });
            receive
        };
        let results: Vec<_> = (0..threads).map(begin).collect();
        for (number, results) in (0..items.len()).step_by(size).zip(results.iter().cycle()) {
            // If a thread panics, the scope propagates the panic.
            let Ok(results) = results.recv() else { return };
            results.into_iter().enumerate().for_each(|(at, result)| take(number + at, result));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_results_in_order() {
        for count in [0, 1, AHEAD, AHEAD + 1, 1003] {
            let items: Vec<usize> = (0..count).collect();
            let mut seen = Vec::new();
            in_order(&items, |item| item * 2, |number, result| seen.push((number, result)));
            assert_eq!(seen, (0..count).map(|item| (item, item * 2)).collect::<Vec<_>>());
        }
    }
}
