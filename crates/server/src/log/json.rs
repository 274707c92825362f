//! Log lines as JSON: the event, and the fields of its spans. A span is formatted only when a line needs it:
//! most requests log nothing.

use std::{
    error::Error,
    fmt::{self, Write as _},
    io::Write as _,
};

use serde_json::{Map, Value};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};
use tracing_subscriber::{
    fmt::{
        MakeWriter as _,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    layer::{Context, Layer},
    registry::LookupSpan,
};

use super::Lines;

/// The layer that writes each event as a line.
pub struct Json;

/// The recorded fields of an event or a span.
#[derive(Default)]
struct Fields(Vec<(&'static str, Value)>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.into()));
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.push((field.name(), value.into()));
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.push((field.name(), value.into()));
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.push((field.name(), value.into()));
    }
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.push((field.name(), value.into()));
    }
    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.0.push((field.name(), value.to_string().into()));
    }
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // writing to a String fails only where the value's formatting does
        let _ = write!(text, "{value:?}");
        self.0.push((field.name(), text.into()));
    }
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for Json {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        span.extensions_mut().insert(fields);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(fields) = span.extensions_mut().get_mut::<Fields>() {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut time = String::new();
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let mut line = Map::new();
        line.insert("timestamp".to_owned(), time.into());
        line.insert("level".to_owned(), event.metadata().level().as_str().into());
        line.insert("target".to_owned(), event.metadata().target().into());
        let mut fields = Fields::default();
        event.record(&mut fields);
        // of fields with one name, the last one recorded, closest to the event, is written
        let mut add = |fields: &[(&'static str, Value)]| {
            for (name, value) in fields.iter().rev() {
                line.entry(*name).or_insert_with(|| value.clone());
            }
        };
        add(&fields.0);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<Fields>() {
                add(&fields.0);
            }
        }
        // a line that cannot be written is counted by its writer
        let _ = writeln!(Lines.make_writer(), "{}", Value::Object(line));
    }
}
