//! Cursors of feeds: a reader's position in a trail.

use chancery_record::Value;
use chancery_store::{Error, Tx, selectable};

use crate::{AppContext, Context, Problem, ProblemKind};

/// A position in a trail, with the number of the event there, so that a changed history (by a restore, or a
/// failover that lost commits) is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventCursor {
    /// The trail.
    pub trail: i64,
    /// The position, from 1; 0 is before the first event.
    pub position: i64,
    /// The number of the event there; 0 before the first.
    pub event: i64,
}

selectable! {
    /// The state of a trail.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct TrailState from "FROM event_trail t \
        LEFT JOIN event_place p ON p.trail = t.trail AND p.position = t.placed WHERE t.trail = ?1" {
        /// The highest position.
        pub last_position: i64 = "t.placed",
        /// The number of the event there; 0 where there is none.
        pub last: i64 = "coalesce(p.event, 0)",
        /// The highest position whose event is past its retention; 0 for none.
        pub pruned: i64 = "t.pruned",
    }
}

/// The associated data of feed cursors.
const FEED: &[u8] = b"event";

impl TrailState {
    /// Reads the state of a trail.
    pub fn load(tx: &mut Tx<'_>, trail: i64) -> Result<Self, Error> {
        Ok(tx.one(Self::SELECT, &[Value::Int(trail)], Self::read)?.unwrap_or_default())
    }

    /// The cursor after the last sequenced event.
    pub const fn end(&self, trail: i64) -> EventCursor {
        EventCursor { trail, position: self.last_position, event: self.last }
    }
}

impl EventCursor {
    /// The cursor for readers.
    pub fn seal(&self, context: &Context) -> String {
        let values = [self.trail, self.position, self.event].map(Value::Int);
        context.app.cursors.seal(FEED, &values)
    }

    /// Opens a cursor of this trail.
    ///
    /// # Errors
    /// The text is not a cursor, or is one of another trail.
    pub fn open(context: &Context, trail: i64, text: &str) -> Result<Self, Problem> {
        let invalid = || {
            Problem::invalid(
                "The cursor is not one of this feed. Take next of an earlier answer, or X-Event-Cursor of a list.",
            )
        };
        Self::read(&context.app, text).filter(|cursor| cursor.trail == trail).ok_or_else(invalid)
    }

    /// Reads a cursor of any trail.
    pub fn read(app: &AppContext, text: &str) -> Option<Self> {
        match app.cursors.open(FEED, text).as_deref() {
            Some([Value::Int(trail), Value::Int(position), Value::Int(event)]) => {
                Some(Self { trail: *trail, position: *position, event: *event })
            }
            _ => None,
        }
    }

    /// Checks that the event at the cursor is unchanged, and that no event after it was pruned.
    ///
    /// # Errors
    /// 410: the history was changed, or the next events are past their retention.
    pub fn check(&self, context: &Context, tx: &mut Tx<'_>, state: &TrailState) -> Result<(), Problem> {
        let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
        let stored_event =
            tx.one(text, &[Value::Int(self.trail), Value::Int(self.position)], |row| row.int(0))?;
        match stored_event {
            Some(event) if event == self.event => Ok(()),
            None if self.position < state.pruned => Err(self.events_gone(context, tx, state)?),
            None if self.position == 0 => Ok(()),
            _ => {
                let detail = "The history of this feed is not the one that was read up to this cursor: an older state of the \
                    data was restored. Take a full list, and go on from its X-Event-Cursor.";
                Err(Problem::new(ProblemKind::EventHistoryChanged, detail))
            }
        }
    }

    fn events_gone(self, context: &Context, tx: &mut Tx<'_>, state: &TrailState) -> Result<Problem, Error> {
        let text = "SELECT event FROM event_place WHERE trail = ?1 AND position = ?2";
        let key = [Value::Int(self.trail), Value::Int(state.pruned)];
        let event = tx.one(text, &key, |row| row.int(0))?.unwrap_or(0);
        let oldest = Self { trail: self.trail, position: state.pruned, event };
        let detail = "Events behind this cursor are kept no longer. Take a full list, and go on from its \
            X-Event-Cursor; oldest is the cursor before the first event that is still there.";
        Ok(Problem::new(ProblemKind::EventsGone, detail).with_member("oldest", oldest.seal(context)))
    }
}
