//! Simulates the queue of `server::concurrency` with one permit. The first simulation uses all parameters. Each further
//! simulation disables one parameter, to show the effect of this parameter. The simulations do not measure real time,
//! so other load on the machine does not change the results. `make limiter` runs this program.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool of the repository")]

mod server;

fn main() {
    server::concurrency::report();
}
