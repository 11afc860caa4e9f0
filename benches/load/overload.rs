//! Measures the server while it receives three times as many requests as it can process, and while it recovers from
//! this overload.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::client::{Call, Client, Pace};
use super::objects;
use super::page::{made_by, met, mib};
use super::process::Process;
use super::reviews;
use super::samples::{Samples, millis};
use super::setting::Setting;

/// Number of EnvironmentConfigs in the catalog.
const CONFIGS: usize = 100;
/// Number of patches that copy values between the composite and its environment.
const PATCHES: usize = 5;
/// Number of keys of each EnvironmentConfig.
const KEYS: usize = 8;
/// Number of concurrent requests while the capacity is measured. With four requests, the server is always busy, but no
/// request waits in its queue.
const WORKERS: usize = 4;
/// Number of connections that the client, which stands for one API server, opens to the server. There are enough
/// connections for all requests in the server's queue, so no request waits in the client.
const CONNECTIONS: usize = 100;
const CAPACITY_TIME: Duration = Duration::from_secs(5);
const BEFORE: Duration = Duration::from_secs(15);
/// Duration of the measurement after the overload.
const AFTER: Duration = Duration::from_secs(10);

const SHED_AIM: Duration = Duration::from_millis(5);
const RECOVERY_AIM: Duration = Duration::from_secs(1);
/// The memory limit of the chart, in KiB.
const MEMORY_LIMIT: usize = 1024 * 1024;

pub async fn run(setting: &Setting) -> String {
    let time = setting.seconds(60);
    let server = setting.portcullis_with_catalog(&catalog(setting));
    let client = Client::with_connections(&server, &setting.client(), CONNECTIONS).await;
    let call = Call { path: "/mutate", body: reviews::review("xapps", &objects::composite()), share: 1 };
    // Warm-up.
    client.capacity(&call, WORKERS, CAPACITY_TIME / 5).await;
    let capacity = client.capacity(&call, WORKERS, CAPACITY_TIME).await;
    let calls = [Arc::new(call)];
    let offer = |share: f64, time| client.offer(&calls, capacity * share, time, Pace::Exact);

    let unloaded = offer(0.1, BEFORE).await;
    let half = offer(0.5, BEFORE).await;
    let (overload, peak) = tokio::join!(offer(3.0, time), peak(&server, time));
    let after = offer(0.5, AFTER).await;

    let phases = [
        ("unloaded: a tenth", &unloaded),
        ("half of its capacity", &half),
        ("three times its capacity", &overload),
        ("half again, at once", &after),
    ];
    let command = format!("cargo bench --bench load -- overload --write --seconds={}", time.as_secs());
    let mut text = format!("{}\n\n", made_by(&command, setting.is_pinned));
    let _ = writeln!(text, "Its capacity was {capacity:.0} requests a second.\n");
    write_phases(&mut text, &phases);
    write_aims(&mut text, &unloaded, &overload, &after, peak);
    text
}

/// Creates a catalog with a Composition and its EnvironmentConfigs. A request needs several times as much CPU time in
/// the server as in the client. So the client can send three times as many requests as the server can process, and does
/// not become the bottleneck.
fn catalog(setting: &Setting) -> PathBuf {
    let folder = setting.folder("composition");
    let mut items = objects::stored(CONFIGS);
    // With all patches and keys, a decision would take two milliseconds and delay the requests after it by that time.
    let patches = items.iter_mut().filter_map(|item| item.pointer_mut("/spec/environment/patches")?.as_array_mut());
    patches.for_each(|patches| patches.truncate(PATCHES));
    let data = items.iter_mut().filter_map(|item| item.get_mut("data")?.as_object_mut());
    data.for_each(|data| *data = std::mem::take(data).into_iter().take(KEYS).collect());
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(folder.join("all.json"), list.to_string()).unwrap();
    folder
}

fn write_phases(text: &mut String, phases: &[(&str, &Samples)]) {
    *text += "| offered | per second | decided | rejected | failed | decided: p50 | p99 | p99.9 | rejected: p99 |\n";
    *text += "|:--|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for (name, samples) in phases {
        let [all, decided, shed] = [samples.all.len(), samples.count(200), samples.count(429)];
        let [all_rate, decided_rate, shed_rate] = [all, decided, shed].map(|count| samples.per_second(count));
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| millis(samples.quantile(200, part)));
        let shed_p99 = if shed == 0 { "–".to_owned() } else { millis(samples.quantile(429, 0.99)) };
        let failed = samples.failed();
        let _ = writeln!(
            text,
            "| {name} | {all_rate:.0} | {decided_rate:.0} | {shed_rate:.0} | {failed} | {p50} | {p99} | {p999} | {shed_p99} |"
        );
    }
}

fn write_aims(text: &mut String, unloaded: &Samples, overload: &Samples, after: &Samples, peak: usize) {
    let (unloaded_p99, overload_p99) = (unloaded.quantile(200, 0.99), overload.quantile(200, 0.99));
    let shed = overload.quantile(429, 0.99);
    let recovered = recovery(after, unloaded_p99 * 2);
    *text += "\n| aim | measured | |\n|:--|--:|:--|\n";
    let aims = [
        (
            "p99 of decided requests: at most twice the unloaded p99",
            format!("{:.2} times", overload_p99.div_duration_f64(unloaded_p99)),
            overload_p99 <= unloaded_p99 * 2,
        ),
        ("p99 of rejected requests: under 5 ms", millis(shed), shed < SHED_AIM),
        ("memory: under the chart's limit of 1 GiB", mib(peak), peak < MEMORY_LIMIT),
        ("recovers within a second", millis(recovered), recovered < RECOVERY_AIM),
        ("no request without an answer", overload.failed().to_string(), overload.failed() == 0),
    ];
    for (aim, measured, is_met) in aims {
        let _ = writeln!(text, "| {aim} | {measured} | {} |", met(is_met));
    }
}

/// Returns the time that the server needs to recover after the overload. The server counts as recovered in the first
/// interval of 100 ms in which it decides at least 95 % of the requests within `limit`. `after` contains the outcomes
/// of the requests after the overload.
fn recovery(after: &Samples, limit: Duration) -> Duration {
    const WINDOW: Duration = Duration::from_millis(100);
    let windows = (after.time.as_millis() / WINDOW.as_millis()) as u32;
    let is_recovered = |window: u32| {
        let in_window: Vec<_> = after
            .all
            .iter()
            .filter(|sample| sample.at >= WINDOW * window && sample.at < WINDOW * (window + 1))
            .collect();
        let slow = in_window.iter().filter(|sample| sample.status != 200 || sample.took > limit).count();
        slow * 100 <= in_window.len() * 5
    };
    WINDOW * (0..windows).find(|window| is_recovered(*window)).unwrap_or(windows)
}

/// Waits for `time`, and then returns the peak resident memory of the server, in KiB.
async fn peak(server: &Process, time: Duration) -> usize {
    sleep(time).await;
    server.status("VmHWM")
}
