//! Work on many things at once, the results of which come in their order.

use std::sync::mpsc::sync_channel;
use std::thread;

/// What each thread does ahead of the result that is wanted next: enough that it seldom waits, and what waits is small.
const AHEAD: usize = 16;
/// More threads would read files faster than any disk gives them.
const MOST_THREADS: usize = 8;

/// Does `work` on all items, and hands each result over with its number, in the order of the items. Few items are not worth
/// a thread.
pub(super) fn in_order<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync, mut take: impl FnMut(usize, R)) {
    let threads = if items.len() <= AHEAD { 1 } else { thread::available_parallelism().map_or(1, usize::from) };
    if threads == 1 {
        items.iter().map(work).enumerate().for_each(|(number, result)| take(number, result));
        return;
    }
    let (threads, work) = (threads.min(MOST_THREADS), &work);
    thread::scope(|scope| {
        let begin = |first| {
            let (send, receive) = sync_channel(AHEAD);
            scope.spawn(move || {
                // an error means that nobody wants the results any more
                items.iter().skip(first).step_by(threads).map(work).try_for_each(|result| send.send(result))
            });
            receive
        };
        let results: Vec<_> = (0..threads).map(begin).collect();
        for (number, results) in (0..items.len()).zip(results.iter().cycle()) {
            // a thread that panicked ends the scope with its panic
            let Ok(result) = results.recv() else { return };
            take(number, result);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        for count in [0, 1, AHEAD, 1000] {
            let items: Vec<usize> = (0..count).collect();
            let mut seen = Vec::new();
            in_order(&items, |item| item * 2, |number, result| seen.push((number, result)));
            assert_eq!(seen, (0..count).map(|item| (item, item * 2)).collect::<Vec<_>>());
        }
    }
}
