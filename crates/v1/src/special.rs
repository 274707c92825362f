//! Operations outside of the pattern: those of version 2, in the representations of version 1.

use chancery_record::{FieldError, Json};
use chancery_resource::{
    Action, Answer, Body, BodyForm, Call, Custom, Method, Op, Problem, Reply, Run, Service, Shape, Tx,
};

/// An operation of version 2, found by its name and adapted to version 1; `None` for an unknown name, which
/// the test against the list of operations finds.
pub struct Special(Option<Op>);

/// The operation of a service with this name.
pub fn find(service: &'static Service, name: &str) -> Special {
    let successor = service.all().find(|op| op.name == name);
    Special(successor.map(|op| Op { successor, addition: false, ..*op }))
}

/// The operations, without unknown ones.
pub fn known_only(specials: impl IntoIterator<Item = Special>) -> Vec<Op> {
    specials.into_iter().filter_map(|special| special.0).collect()
}

impl Special {
    /// Answers in this form of version 1.
    pub fn in_form(self, shape: &'static Shape) -> Self {
        Self(self.0.map(|op| Op { shape, ..op }))
    }

    /// Uses another method and answers with an empty body.
    pub fn with_empty_reply(self, method: Method) -> Self {
        let special = self.map_custom(|custom| custom.replying(Reply::Empty));
        Self(special.0.map(|op| Op { method, reply: Reply::Empty, ..op }))
    }

    /// Runs this function, which calls that of version 2.
    pub fn run_by(self, run: Run) -> Self {
        self.map_custom(|custom| Custom { run, ..custom })
    }

    /// Takes a body of this form.
    pub fn taking(self, form: &'static BodyForm) -> Self {
        self.map_custom(|custom| custom.taking(Body::Form(form)))
    }

    /// Restricts `{type}` in the path to these choices.
    pub fn choosing(self, choices: &'static [&'static str]) -> Self {
        Self(self.0.map(|op| op.choosing(choices)))
    }

    /// Makes the body optional.
    pub fn optionally(self) -> Self {
        self.map_custom(Custom::optionally)
    }

    fn map_custom(self, change: impl FnOnce(Custom) -> Custom) -> Self {
        Self(self.0.map(|op| match op.action {
            Action::Custom(custom) => Op { action: Action::Custom(change(custom)), ..op },
            _ => op,
        }))
    }
}

/// The function of version 2 for a call.
pub fn run_of(call: &Call) -> Result<Run, Problem> {
    match call.request.op.successor.map(|op| op.action) {
        Some(Action::Custom(custom)) => Ok(custom.run),
        _ => Err(Problem::not_found("operation")),
    }
}

/// Runs the function of version 2 with the members renamed: `names` are pairs of version 1 and version 2.
/// Other members are ignored. Errors have the names of version 1.
///
/// # Errors
/// As the function of version 2.
pub fn renamed(
    call: &mut Call,
    tx: &mut Tx<'_>,
    names: &[(&str, &str)],
    value: impl Fn(&str, &Json) -> Json,
) -> Result<Answer, Problem> {
    let run = run_of(call)?;
    let original = call.request.body.take();
    call.request.body = original.as_ref().map(|body| match body {
        Json::Object(members) => {
            let known = |name: &String| names.iter().find(|(old, _)| old == name).map(|(_, new)| *new);
            let renamed = members
                .iter()
                .filter_map(|(name, json)| known(name).map(|new| (new.to_owned(), value(name, json))));
            Json::Object(renamed.collect())
        }
        other => other.clone(),
    });
    let outcome = run(call, tx);
    call.request.body = original;
    outcome.map_err(|problem| with_names(problem, names))
}

fn with_names(mut problem: Problem, names: &[(&str, &str)]) -> Problem {
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

/// Runs the function of version 2 with the first path parameter replaced, if `known` has another name for it.
///
/// # Errors
/// As the function of version 2.
pub fn with_path_name(
    call: &mut Call,
    tx: &mut Tx<'_>,
    known: impl FnOnce(&str) -> Option<&'static str>,
) -> Result<Answer, Problem> {
    let run = run_of(call)?;
    let original = call.request.path.clone();
    if let (Some(name), Some(first)) = (known(call.request.parameter(0)), call.request.path.first_mut()) {
        name.clone_into(first);
    }
    let outcome = run(call, tx);
    call.request.path = original;
    outcome
}
