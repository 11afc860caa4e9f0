//! Compares the costs of several calls. Each round makes all calls, so that changes in the speed of the machine affect
//! all calls in the same way.

use super::called::{Call, ConnectedServer};
use super::report::Costs;

/// The calls to compare, and the servers that receive them. The first call is the baseline.
pub struct Rounds {
    servers: Vec<ConnectedServer>,
    calls: Vec<(usize, Call)>,
    /// Minimum number of times that each call is made in a round.
    count: usize,
    rounds: usize,
}

impl Rounds {
    pub fn new(count: usize, rounds: usize) -> Self {
        Self { servers: Vec::new(), calls: Vec::new(), count, rounds }
    }

    /// Adds a server, and returns its index for [`Rounds::call`].
    pub fn server(&mut self, server: ConnectedServer) -> usize {
        self.servers.push(server);
        self.servers.len() - 1
    }

    pub fn call(&mut self, server: usize, call: Call) {
        self.calls.push((server, call));
    }

    /// Runs all rounds. Every second round makes its calls in reverse order. Returns the costs of each call except the
    /// baseline.
    pub async fn run(mut self) -> Vec<Costs> {
        self.round(false).await;
        let mut rounds = Vec::new();
        for round in 0..self.rounds {
            rounds.push(self.round(round % 2 == 1).await);
        }
        let of = |at: usize| -> Vec<f64> { rounds.iter().map(|round| round[at]).collect() };
        let others = self.calls.iter().enumerate().skip(1);
        others.map(|(at, (_, call))| Costs::new(call, &of(0), &of(at))).collect()
    }

    async fn round(&mut self, backwards: bool) -> Vec<f64> {
        let mut costs = vec![0.0; self.calls.len()];
        for step in 0..self.calls.len() {
            let at = if backwards { self.calls.len() - 1 - step } else { step };
            let (server, call) = &self.calls[at];
            costs[at] = self.servers[*server].cost(call, self.count).await;
        }
        costs
    }
}
