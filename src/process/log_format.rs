//! Formats log records: time, level, target and fields.
//!
//! Every decision is logged, so slow formatting would slow down every decision. The formatters of tracing-subscriber
//! are slower, because they support colors and spans, and use a serializer. Portcullis needs none of these features.

use std::fmt::{self, Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::registry::LookupSpan;

/// The name of the field that contains the message, as in the crate tracing.
const MESSAGE: &str = "message";

/// The text format of log records, such as `2026-01-01T00:00:00.000000Z  INFO decision: allowed=true user="alice"`.
pub(super) struct Text;

/// The JSON format of log records, such as
/// `{"timestamp":"2026-01-01T00:00:00.000000Z","level":"INFO","target":"decision","allowed":true,"user":"alice"}`.
pub(super) struct Json;

impl<S, N> FormatEvent<S, N> for Text
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        SystemTime.format_time(&mut writer)?;
        let (level, target) = (event.metadata().level().as_str(), event.metadata().target());
        write!(writer, " {level:>5} ")?;
        writer.write_str(target)?;
        writer.write_char(':')?;
        let mut fields = TextFields { writer, written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        fields.writer.write_char('\n')
    }
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writer.write_str("{\"timestamp\":\"")?;
        SystemTime.format_time(&mut writer)?;
        let (level, target) = (event.metadata().level().as_str(), event.metadata().target());
        write!(writer, "\",\"level\":\"{level}\",\"target\":\"{target}\"")?;
        let mut fields = JsonFields { writer, written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        fields.writer.write_str("}\n")
    }
}

/// A visitor that writes fields as `key=value`, with strings in quotes. It writes the message without a key.
struct TextFields<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
}

impl TextFields<'_> {
    fn field(&mut self, field: &Field, write: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let Self { writer, written } = self;
        let key = field.name();
        *written = written
            .and_then(|()| writer.write_char(' '))
            .and_then(|()| if key == MESSAGE { Ok(()) } else { writer.write_str(key).and(writer.write_char('=')) })
            .and_then(|()| write(writer));
    }
}

impl Visit for TextFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.field(field, |writer| write!(OneLine(writer), "{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, |writer| if is_plain(value) { quote(writer, value) } else { write!(writer, "{value:?}") });
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, |writer| writer.write_str(word(value)));
    }
}

/// A visitor that writes fields as members of a JSON object.
struct JsonFields<'w> {
    writer: Writer<'w>,
    written: fmt::Result,
}

impl JsonFields<'_> {
    fn field(&mut self, field: &Field, write: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        let Self { writer, written } = self;
        let key = field.name();
        *written = written
            .and_then(|()| [",\"", key, "\":"].iter().try_for_each(|part| writer.write_str(part)))
            .and_then(|()| write(writer));
    }
}

impl Visit for JsonFields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.field(field, |writer| match is_plain(value) {
            true => quote(writer, value),
            false => writer.write_str(&serde_json::to_string(value).map_err(|_| fmt::Error)?),
        });
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.field(field, |writer| writer.write_str(word(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.field(field, |writer| write!(writer, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.field(field, |writer| write!(writer, "{value}"));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON cannot represent infinities and NaN.
        self.field(field, |writer| match value.is_finite() {
            true => write!(writer, "{value}"),
            false => writer.write_str("null"),
        });
    }
}

/// A writer that escapes control characters, which could start another record or control a terminal.
struct OneLine<'a, 'w>(&'a mut Writer<'w>);

impl fmt::Write for OneLine<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if !text.contains(char::is_control) {
            return self.0.write_str(text);
        }
        text.chars().try_for_each(|c| match c.is_control() {
            true => write!(self.0, "{}", c.escape_debug()),
            false => self.0.write_char(c),
        })
    }
}

/// Returns whether a text can be written in quotes without escaping any character. The result is valid for both log
/// formats.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\')
}

fn quote(writer: &mut Writer<'_>, text: &str) -> fmt::Result {
    writer.write_char('"')?;
    writer.write_str(text)?;
    writer.write_char('"')
}

fn word(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::telemetry::{Format, Telemetry};

    /// Calls `log`, and returns the log records that this closure writes. `format` is the format of the records.
    fn logged(format: Format, log: impl FnOnce()) -> String {
        struct Buffer(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Buffer {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let buffer = Arc::new(Mutex::new(Vec::new()));
        let (telemetry, subscriber) = Telemetry::new(format, "info", Buffer(Arc::clone(&buffer))).unwrap();
        tracing::subscriber::with_default(subscriber, log);
        drop(telemetry);
        String::from_utf8(buffer.lock().unwrap().clone()).unwrap()
    }

    fn log_odd_values() {
        let error = std::io::Error::other("it \"broke\"\nhere");
        tracing::info!(target: "test", user = "a\nb \"c\" \u{1b}[1m\u{9b}", n = 7_u64, ok = true, share = 0.5, %error, "what\nis");
    }

    #[test]
    fn text_records_cannot_be_forged() {
        let line = logged(Format::Text, log_odd_values);
        let (time, rest) = line.split_once(' ').unwrap();
        assert_eq!(time.len(), "2026-01-01T00:00:00.000000Z".len());
        assert_eq!(
            rest,
            " INFO test: what\\nis user=\"a\\nb \\\"c\\\" \\u{1b}[1m\\u{9b}\" n=7 ok=true share=0.5 \
             error=it \"broke\"\\nhere\n"
        );
    }

    #[test]
    fn json_records_are_valid_json() {
        let line = logged(Format::Json, log_odd_values);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        assert_eq!(value["message"], "what\nis");
        assert_eq!(value["user"], "a\nb \"c\" \u{1b}[1m\u{9b}");
        assert_eq!((&value["n"], &value["ok"], &value["share"]), (&7.into(), &true.into(), &0.5.into()));
        assert_eq!(value["error"], "it \"broke\"\nhere");
        assert_eq!((&value["level"], &value["target"]), (&"INFO".into(), &"test".into()));
    }
}
