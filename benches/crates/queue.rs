//! Compares the work queue of Portcullis with the scheduler of kube-runtime, both with the same retry delays. Measures
//! the number of attempts for an object that always fails and often changes, and the memory for each queued object.
//!
//! The clock is paused, so the counts are exact.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use futures::channel::mpsc::unbounded;
use futures::{Stream, StreamExt as _, stream};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use portcullis::catalog::{NAMESPACES, Reference};
use portcullis::reconciler::queue::Queue;
use tokio::time::{Instant, interval, sleep_until};

/// Time between two changes of the object.
const CHANGE_INTERVAL: Duration = Duration::from_millis(100);
/// Duration of the simulation. Every attempt to reconcile the object fails during this time.
const DURATION: Duration = Duration::from_mins(5);
/// Number of objects that are queued at once, to measure the memory.
const OBJECTS: usize = 100_000;

/// Measures the work queue of Portcullis and the scheduler of kube-runtime. Returns the results as a Markdown table.
pub fn table() -> String {
    let paused = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let attempts = [paused().block_on(our_attempts()), paused().block_on(their_attempts())];
    let bytes = [paused().block_on(our_bytes()), paused().block_on(their_bytes())];
    format!(
        "| work queue | attempts at an object that fails for five minutes and changes ten times a second | bytes per object |\n\
         |:--|--:|--:|\n\
         | ours | {} | {} |\n\
         | kube-runtime's scheduler | {} | {} |\n",
        attempts[0], bytes[0], attempts[1], bytes[1]
    )
}

fn object(number: usize) -> Reference {
    Reference::new(&NAMESPACES, "", &format!("object-{number}"))
}

async fn our_attempts() -> usize {
    let queue = Queue::default();
    queue.open();
    let (mut attempts, mut changes, end) = (0, interval(CHANGE_INTERVAL), Instant::now() + DURATION);
    loop {
        tokio::select! {
            () = sleep_until(end) => return attempts,
            _ = changes.tick() => queue.push(object(0)),
            next = queue.next() => {
                attempts += 1;
                queue.done(&next.expect("the queue is open"), None);
            }
        }
    }
}

/// Counts the attempts to reconcile an object that always fails and often changes, with the scheduler of kube-runtime.
/// As in the controller of kube-runtime, an attempt starts immediately after each change of the object. If an attempt
/// fails, the next attempt starts after a delay.
async fn their_attempts() -> usize {
    let (failed, failures) = unbounded();
    let changes = ticks().map(|()| ScheduleRequest { message: object(0), run_at: Instant::now() });
    let mut queue = scheduler(stream::select(changes, failures));
    let (mut attempts, end) = (0, Instant::now() + DURATION);
    let mut delay = Duration::from_millis(50);
    loop {
        tokio::select! {
            () = sleep_until(end) => return attempts,
            next = queue.next() => {
                attempts += 1;
                let run_at = Instant::now() + delay;
                delay = Duration::from_secs(60).min(delay * 2);
                failed.unbounded_send(ScheduleRequest { message: next.expect("the streams do not end"), run_at }).unwrap();
            }
        }
    }
}

fn ticks() -> impl Stream<Item = ()> + Unpin {
    Box::pin(stream::unfold(interval(CHANGE_INTERVAL), async |mut interval| {
        interval.tick().await;
        Some(((), interval))
    }))
}

async fn our_bytes() -> usize {
    let before = resident_bytes();
    let queue = Queue::with_capacity(OBJECTS);
    queue.open();
    (0..OBJECTS).for_each(|number| queue.push(object(number)));
    assert_eq!(queue.len(), OBJECTS);
    (resident_bytes() - before) / OBJECTS
}

async fn their_bytes() -> usize {
    let before = resident_bytes();
    let run_at = Instant::now() + DURATION;
    let requests = stream::iter(0..OBJECTS).map(move |number| ScheduleRequest { message: object(number), run_at });
    let mut queue = scheduler(requests.chain(stream::pending()));
    assert!(futures::poll!(queue.next()).is_pending());
    (resident_bytes() - before) / OBJECTS
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let values: HashMap<_, _> = status.lines().filter_map(|line| line.split_once(':')).collect();
    values["VmRSS"].trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}
