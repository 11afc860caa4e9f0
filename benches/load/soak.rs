//! Runs a soak test. It sends admission reviews of all kinds: small, large and invalid ones. Meanwhile, certificates
//! rotate and the catalog changes. The memory of the server must not grow.

use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::client::{Call, Client, Pace};
use super::page::{made_by, met, mib};
use super::process::Process;
use super::reviews;
use super::samples::{Samples, millis};
use super::setting::Setting;

const KIB: usize = 1024;
const RATE: u64 = 200;
/// Number of rows in the table of results. Each row covers the same duration.
const ROWS: u32 = 12;
const ROTATION_INTERVAL: Duration = Duration::from_secs(60);
const CHANGE_INTERVAL: Duration = Duration::from_secs(10);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum ratio of the mean memory in the last quarter of the test to the mean memory in the second quarter. The first
/// quarter does not count, because the server still warms up.
const GROWTH_AIM: f64 = 1.05;

/// A sample of the server's memory in KiB and of its number of threads.
struct ServerSample {
    resident: usize,
    threads: usize,
}

pub async fn run(setting: &Setting) -> String {
    let (time, rate) = (setting.seconds(3600), setting.number("--rate", RATE));
    let server = setting.portcullis(1000);
    let client = Client::new(&server, &setting.client()).await;
    let calls = request_mix();
    let mut rows = Vec::new();
    let measure = async {
        for number in 0..ROWS {
            let offered = client.offer(&calls, rate as f64, time / ROWS, Pace::Relaxed);
            let (samples, server_samples) = tokio::join!(offered, sample_server(&server, time / ROWS));
            eprintln!("{}/{ROWS}: {} requests, {}", number + 1, samples.all.len(), mib(mean(&server_samples)));
            rows.push((samples, server_samples));
        }
    };
    // The other two loops are endless. They are dropped when the soak test ends.
    tokio::select! {
        () = measure => {}
        () = rotate(setting) => {}
        () = change(setting) => {}
    }
    let command = format!("cargo bench --bench load -- soak --write --seconds={} --rate={rate}", time.as_secs());
    format!("{}\n\n{}", made_by(&command, setting.is_pinned), table(&rows, time))
}

fn request_mix() -> Vec<Arc<Call>> {
    let call = |share, path, body| Arc::new(Call { path, body, share });
    vec![
        call(300, "/validate", reviews::installation(3 * KIB)),
        call(300, "/mutate", reviews::installation(3 * KIB)),
        call(200, "/validate", reviews::unhandled(3 * KIB)),
        call(100, "/validate", reviews::installation(6 * KIB)),
        call(50, "/validate", reviews::overwrites(100)),
        call(30, "/validate", br#"{"request":{"uid":"broken","operation":7}}"#.to_vec()),
        call(19, "/validate", reviews::unhandled(200 * KIB)),
        call(1, "/validate", reviews::installation(2 * KIB * KIB)),
    ]
}

async fn sample_server(server: &Process, time: Duration) -> Vec<ServerSample> {
    let began = Instant::now();
    let mut server_samples = Vec::new();
    while began.elapsed() < time {
        server_samples.push(ServerSample { resident: server.status("VmRSS"), threads: server.status("Threads") });
        sleep(SAMPLE_INTERVAL.min(time)).await;
    }
    server_samples
}

async fn rotate(setting: &Setting) {
    loop {
        sleep(ROTATION_INTERVAL).await;
        let next = setting.authority.leaf();
        setting.mount.publish(&next.chain, &next.key);
    }
}

/// Repeatedly changes the catalog: adds a file with an Installation, and removes the file again.
async fn change(setting: &Setting) {
    let file = setting.catalog(1000).join("more.json");
    let more = reviews::small_installation("more").to_string();
    loop {
        sleep(CHANGE_INTERVAL).await;
        fs::write(&file, &more).unwrap();
        sleep(CHANGE_INTERVAL).await;
        fs::remove_file(&file).unwrap();
    }
}

fn table(rows: &[(Samples, Vec<ServerSample>)], time: Duration) -> String {
    let mut text = "| until | requests | not decided | p50 | p99 | resident | at most | threads |\n".to_owned();
    text += "|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for (number, (samples, server_samples)) in rows.iter().enumerate() {
        let until = time.as_secs_f64() / 60.0 * (number + 1) as f64 / f64::from(ROWS);
        let [p50, p99] = [0.5, 0.99].map(|part| millis(samples.quantile(200, part)));
        let peak = server_samples.iter().map(|sample| sample.resident).max().unwrap_or_default();
        let threads = server_samples.iter().map(|sample| sample.threads).max().unwrap_or_default();
        let others = samples.all.len() - samples.count(200);
        let (all, resident, peak) = (samples.all.len(), mib(mean(server_samples)), mib(peak));
        let _ =
            writeln!(text, "| {until:.1} min | {all} | {others} | {p50} | {p99} | {resident} | {peak} | {threads} |");
    }
    let quarter = rows.len() / 4;
    let of = |rows: &[(Samples, Vec<ServerSample>)]| {
        rows.iter().map(|(_, server_samples)| mean(server_samples)).sum::<usize>() as f64 / rows.len().max(1) as f64
    };
    let growth = of(&rows[rows.len() - quarter..]) / of(&rows[quarter..quarter * 2]);
    let unanswered: usize = rows.iter().map(|(samples, _)| samples.failed()).sum();
    let _ = writeln!(text, "\n| aim | measured | |\n|:--|--:|:--|");
    let _ = writeln!(
        text,
        "| memory of the last quarter beside the second's: at most {GROWTH_AIM} times | {growth:.3} times | {} |",
        met(growth <= GROWTH_AIM)
    );
    let _ = writeln!(text, "| no request without an answer | {unanswered} | {} |", met(unanswered == 0));
    text
}

fn mean(server_samples: &[ServerSample]) -> usize {
    server_samples.iter().map(|sample| sample.resident).sum::<usize>() / server_samples.len().max(1)
}
