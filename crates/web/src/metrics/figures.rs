//! The metrics of slices, read when metrics are requested.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use chancery_store::{Error, Figure, FigureSource, FigureUnit, Mode, Store};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use tokio::time::{Instant, timeout_at};

/// The timeout of the store for all of them: one that hangs must not hide the other metrics.
const READING_TIME: Duration = Duration::from_secs(2);
/// The value of a metric that is unknown.
const UNKNOWN: i64 = i64::MIN;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Failed {
    figure: &'static str,
}

/// The metrics that slices declared, with their known values.
#[derive(Debug)]
pub struct Figures {
    list: Vec<(&'static Figure, AtomicI64)>,
    failed: Family<Failed, Counter>,
}

impl Figures {
    pub fn new(list: &[&'static [Figure]], registry: &mut Registry) -> Arc<Self> {
        let list = list.iter().copied().flatten().map(|figure| {
            let is_recorded = matches!(figure.source, FigureSource::Recorded);
            (figure, AtomicI64::new(if is_recorded { 0 } else { UNKNOWN }))
        });
        let list = list.collect();
        let figures = Arc::new(Self { list, failed: Family::default() });
        let about = "Figures that could not be read, by name: they are missing until they can";
        registry.register("figures_failed", about, figures.failed.clone());
        registry.register_collector(Box::new(Arc::clone(&figures)));
        figures
    }

    /// Records the value that a job determined.
    pub fn note(&self, figure: &'static Figure, value: i64) {
        if let Some((_, known)) = self.list.iter().find(|(known, _)| known.name == figure.name) {
            known.store(value, Ordering::Relaxed);
        }
    }

    /// The known values, by name; times in milliseconds since 1970.
    pub fn values(&self) -> BTreeMap<&'static str, i64> {
        let all = self.list.iter().map(|(figure, value)| (figure.name, value.load(Ordering::Relaxed)));
        all.filter(|(_, value)| *value != UNKNOWN).collect()
    }

    /// Reads all that come from the database. A metric that cannot be read is left out, counted and logged.
    pub async fn read(&self, store: &Store) {
        let until = Instant::now() + READING_TIME;
        for (figure, value) in &self.list {
            let Some(query) = figure.query() else { continue };
            let read = store.run("ReadFigure", Mode::Long, None, move |tx| {
                tx.one(&query, &[], |row| row.int(0)).map(Option::unwrap_or_default)
            });
            let outcome = timeout_at(until, read).await;
            let outcome = outcome.unwrap_or_else(|_| Err(Error::Unavailable("it took too long".into())));
            if let Err(error) = &outcome {
                tracing::warn!(figure = figure.name, %error, "a figure could not be read");
                self.failed.get_or_create(&Failed { figure: figure.name }).inc();
            }
            value.store(outcome.unwrap_or(UNKNOWN), Ordering::Relaxed);
        }
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (figure, value) in &self.list {
            let value = value.load(Ordering::Relaxed);
            if value == UNKNOWN {
                continue;
            }
            let (value, unit) = match figure.unit {
                FigureUnit::Count => (value, None),
                FigureUnit::Time => (value / 1000, Some(&Unit::Seconds)),
            };
            let gauge = ConstGauge::new(value);
            let help = format!("{}.", figure.help);
            gauge.encode(encoder.encode_descriptor(figure.name, &help, unit, gauge.metric_type())?)?;
        }
        Ok(())
    }
}
