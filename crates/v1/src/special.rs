//! Operations beside the pattern: those of version 2, in the forms and under the names of version 1.

use chancery_record::{FieldError, Json};
use chancery_resource::{Action, Answer, Call, Custom, Method, Op, Problem, Reply, Run, Service, Shape};
use chancery_store::Tx;

/// An operation of version 2, found by its name, as version 1 has it.
pub struct Special {
    op: Op,
}

/// The operation of a service with this name; nothing where there is none, which the list's test tells.
pub fn find(service: &'static Service, name: &str) -> Option<Special> {
    let successor = service.all().find(|op| op.name == name)?;
    let op = Op {
        successor: Some(successor),
        query: successor.query,
        beside: successor.beside,
        status: successor.status,
        reply: successor.reply,
        ..Op::new(
            successor.name,
            successor.method,
            successor.path,
            successor.permit,
            successor.shape,
            successor.action,
            successor.summary,
        )
    };
    Some(Special { op })
}

impl Special {
    /// In the form of version 1.
    pub fn in_form(mut self, shape: &'static Shape) -> Self {
        self.op.shape = shape;
        self
    }

    /// With another method and an empty answer.
    pub fn quietly(mut self, method: Method) -> Self {
        (self.op.method, self.op.reply) = (method, Reply::Empty);
        self
    }

    /// Run by this, which hands it on.
    pub fn through(mut self, change: impl FnOnce(Custom) -> Custom) -> Self {
        if let Action::Custom(custom) = self.op.action {
            self.op.action = Action::Custom(change(custom));
        }
        self
    }

    /// The operation.
    pub fn done(self) -> Op {
        self.op
    }
}

/// What version 2 runs in the place of a call.
pub fn run_of(call: &Call) -> Result<Run, Problem> {
    match call.op.successor.map(|op| op.action) {
        Some(Action::Custom(custom)) => Ok(custom.run),
        _ => Err(Problem::not_found("operation")),
    }
}

/// Runs what version 2 does with a body whose members have other names there. What has no name there is
/// read and ignored; what is wrong is told by the names of version 1.
///
/// # Errors
/// Those of version 2.
pub fn renamed(
    call: &mut Call,
    tx: &mut Tx<'_>,
    names: &[(&str, &str)],
    value: impl Fn(&str, &Json) -> Json,
) -> Result<Answer, Problem> {
    let run = run_of(call)?;
    let sent = call.body.take();
    call.body = sent.as_ref().map(|body| match body {
        Json::Object(members) => {
            let known = |name: &String| names.iter().find(|(old, _)| old == name).map(|(_, new)| *new);
            let told = members
                .iter()
                .filter_map(|(name, json)| known(name).map(|new| (new.to_owned(), value(name, json))));
            Json::Object(told.collect())
        }
        other => other.clone(),
    });
    let outcome = run(call, tx);
    call.body = sent;
    outcome.map_err(|problem| told_by(problem, names))
}

fn told_by(mut problem: Problem, names: &[(&str, &str)]) -> Problem {
    for FieldError { pointer, .. } in &mut problem.errors {
        for (old, new) in names.iter().filter(|(old, new)| old != new) {
            if pointer.strip_prefix('/') == Some(*new) {
                problem.detail = problem.detail.replace(&format!("/{new}"), &format!("/{old}"));
                *pointer = format!("/{old}");
            }
        }
    }
    problem
}

/// Runs what version 2 does with a parameter of the path that may be a number there.
///
/// # Errors
/// Those of version 2.
pub fn numbered(call: &mut Call, tx: &mut Tx<'_>, names: &[&str]) -> Result<Answer, Problem> {
    let run = run_of(call)?;
    let sent = call.path.clone();
    let name = call.parameter(0).parse::<usize>().ok().and_then(|place| names.get(place));
    if let (Some(name), Some(first)) = (name, call.path.first_mut()) {
        (*name).clone_into(first);
    }
    let outcome = run(call, tx);
    call.path = sent;
    outcome
}
