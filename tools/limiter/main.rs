//! Simulates the queue of `server::concurrency` with one permit: with all parameters, and then with one parameter
//! disabled at a time, to show its effect. The simulation does not measure real time, so other load on the machine does
//! not change the results. `make limiter` runs it.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the repository")]

mod server;

fn main() {
    server::concurrency::report();
}
