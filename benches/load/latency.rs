//! Measures the latency, the memory usage and the start-up time of Portcullis. Also measures the latency of a baseline
//! server, for comparison.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::client::{Call, Client, Pace};
use super::page::{made_by, met, mib};
use super::reviews;
use super::samples::{Samples, millis};
use super::setting::Setting;
use super::support::harness::get;

const KIB: usize = 1024;
/// Number of rounds. In each round, the latency of the baseline server and then that of Portcullis is measured, so that
/// other load on the machine affects both.
const ROUNDS: usize = 5;
const WORKERS: usize = 8;
const CAPACITY_TIME: Duration = Duration::from_secs(5);
/// Typical rate in requests per second. Memory is measured at this rate.
const TYPICAL_RATE: f64 = 1000.0;
const STARTS: usize = 15;

const P99_AIM: Duration = Duration::from_millis(2);
const START_AIM: Duration = Duration::from_millis(100);
/// The target for the resident memory of Portcullis, in KiB. The memory should not exceed this value.
const MEMORY_AIM: usize = 16 * KIB;

pub async fn run(setting: &Setting) -> String {
    let time = setting.seconds(10);
    let mut text = format!("{}\n\n", made_by("cargo bench --bench load -- latency --write", setting.is_pinned));
    let p99_at_half = write_latency(&mut text, setting, time).await;
    let (memory, peak) = memory(setting, time * 2).await;
    let start = start(setting).await;
    text += "\n| aim | measured | |\n|:--|--:|:--|\n";
    let aims = [
        ("p99 at half load: at most 2 ms", millis(p99_at_half), p99_at_half <= P99_AIM),
        (
            "resident at 1 000 requests per second, with an empty catalog: at most 16 MiB",
            mib(memory),
            memory <= MEMORY_AIM,
        ),
        ("the same, maximum", mib(peak), peak <= MEMORY_AIM),
        ("from start to ready without a cluster: at most 100 ms", millis(start), start <= START_AIM),
    ];
    for (aim, measured, is_met) in aims {
        let _ = writeln!(text, "| {aim} | {measured} | {} |", met(is_met));
    }
    text
}

/// Measures the latency of the baseline server and of Portcullis, at the typical rate and at half of the capacity of
/// Portcullis. Appends the results to `text`. Returns the p99 of Portcullis at half of its capacity.
async fn write_latency(text: &mut String, setting: &Setting, time: Duration) -> Duration {
    let (floor, server) = (setting.floor(), setting.portcullis(10));
    let config = setting.client();
    let clients = [Client::new(&floor, &config).await, Client::new(&server, &config).await];
    let call = Call { path: "/validate", body: reviews::installation(3 * KIB), share: 1 };
    clients[1].capacity(&call, WORKERS, CAPACITY_TIME / 5).await;
    let capacity = clients[1].capacity(&call, WORKERS, CAPACITY_TIME).await;
    let calls = [Arc::new(call)];
    let _ =
        writeln!(text, "An Installation of 3 KB to `/validate`. The server's capacity was {capacity:.0} a second.\n");
    *text += "| requests per second | | p50 | p99 | p99.9 | not decided |\n|--:|:--|--:|--:|--:|--:|\n";
    let mut p99_at_half = Duration::ZERO;
    for rate in [TYPICAL_RATE, capacity / 2.0] {
        let mut both = [Samples::default(), Samples::default()];
        for _ in 0..ROUNDS {
            for (samples, client) in both.iter_mut().zip(&clients) {
                samples.merge(client.offer(&calls, rate, time / ROUNDS as u32, Pace::Exact).await);
            }
        }
        for (name, samples) in ["floor", "portcullis"].iter().zip(&both) {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| millis(samples.quantile(200, part)));
            let others = samples.all.len() - samples.count(200);
            let _ = writeln!(text, "| {rate:.0} | {name} | {p50} | {p99} | {p999} | {others} |");
        }
        p99_at_half = both[1].quantile(200, 0.99);
    }
    p99_at_half
}

/// Returns two values in KiB: the resident memory of Portcullis after a load at the typical rate, and its maximum since
/// the start of the process.
async fn memory(setting: &Setting, time: Duration) -> (usize, usize) {
    let server = setting.portcullis(0);
    let client = Client::new(&server, &setting.client()).await;
    let call = |path| Arc::new(Call { path, body: reviews::installation(3 * KIB), share: 1 });
    client.offer(&[call("/validate"), call("/mutate")], TYPICAL_RATE, time, Pace::Exact).await;
    (server.status("VmRSS"), server.status("VmHWM"))
}

/// Returns the median time from the start of the server process until `/readyz` returns 200.
async fn start(setting: &Setting) -> Duration {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        // The listener is dropped at the end of this statement, so the port is free for the server.
        let admin = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let began = Instant::now();
        let _server = setting.portcullis_with_admin(admin);
        while !get(admin, "/readyz").await.is_ok_and(|(status, _)| status == 200) {
            sleep(Duration::from_millis(1)).await;
        }
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times[STARTS / 2]
}
