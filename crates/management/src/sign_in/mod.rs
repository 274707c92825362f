//! Sessions, grants, consents, factors and records of sign-ins, for administrators.

pub mod consent;
pub mod factor;
pub mod grant;
pub mod record;
pub mod session;

use chancery_resource::{Figure, FigureSource, FigureUnit};

/// The figures of sign-ins, for operators.
pub static FIGURES: [Figure; 2] = [
    Figure {
        name: "logout_waiting",
        help: "Client apps to be told by their back channel that a session ended",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("1", "logout_delivery"),
    },
    Figure {
        name: "logout_dead",
        help: "Those of them that could not be told within an hour: they are not tried again",
        unit: FigureUnit::Count,
        source: FigureSource::Rows("dead_on", "logout_delivery"),
    },
];
