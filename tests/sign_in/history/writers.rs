//! Writers that change users, and record the responses.

use std::{sync::Arc, time::Duration};

use chancery_testkit::{Answer, Client};
use http::Method;
use serde_json::{Value as Json, json};
use tokio::sync::{mpsc, watch};

use super::STORE;
use crate::sign_in::fleet::RandomNumbers;

/// A writer's knowledge of a user: the changes that were answered, and one whose response was lost.
#[derive(Debug, Default)]
pub struct Subject {
    pub id: String,
    pub answered: Vec<&'static str>,
    pub lost: Option<&'static str>,
}

/// A writer's knowledge in the end.
#[derive(Default)]
pub struct WriterReport {
    pub subjects: Vec<Subject>,
    /// The ids of users whose creation was rejected.
    pub refused: Vec<String>,
}

/// The servers' current clients, as they are restarted.
pub type Callers = Arc<Vec<watch::Sender<Client>>>;

struct Writer {
    number: usize,
    callers: Callers,
    progress: mpsc::Sender<()>,
    dice: RandomNumbers,
    results: WriterReport,
}

impl Writer {
    /// An id that nobody else uses.
    fn id(&self, round: usize, kind: usize) -> String {
        format!("0192f0c1-{:04x}-7000-800{kind}-{round:012x}", self.number)
    }

    async fn send(&self, method: Method, path: &str, body: &Json) -> Option<Answer> {
        let client = self.callers[self.number % self.callers.len()].borrow().clone();
        let headers = [("content-type", "application/json")];
        let bytes = if method == Method::DELETE { Vec::new() } else { body.to_string().into_bytes() };
        let answer = client.try_send(method, &format!("{STORE}{path}"), &headers, bytes).await?;
        // a server without its database does not know the result either
        (answer.status != 503).then_some(answer)
    }

    /// Sends a change and returns the response. A change with a lost response is the subject's last.
    async fn change(
        &self,
        subject: &mut Subject,
        what: &'static str,
        (method, path, body): (Method, &str, Json),
    ) -> Option<Answer> {
        let answer = self.send(method, path, &body).await;
        match &answer {
            Some(answer) => {
                assert!(answer.status.is_success(), "{}", String::from_utf8_lossy(&answer.bytes));
                subject.answered.push(what);
                let _ = self.progress.try_send(());
            }
            None => subject.lost = Some(what),
        }
        answer
    }

    /// The lifecycle of a user from the creation to the deletion, or to the first lost response.
    async fn live(&mut self, round: usize, subject: &mut Subject) -> Option<()> {
        let name = format!("w{}x{round}", self.number);
        let body = json!({ "id": subject.id, "loginName": name });
        let created = self.change(subject, "created", (Method::POST, "/User", body.clone())).await?;
        let (one, mut row) = (format!("/User/{}", subject.id), created.json());
        for step in 0..=self.dice.below(4) {
            let patch =
                json!({ "firstName": format!("n{step}"), "concurrencyToken": row["concurrencyToken"] });
            row = self.change(subject, "updated", (Method::PATCH, &one, patch.clone())).await?.json();
            if self.dice.below(4) == 0 {
                // the token is an old one
                let rejected = self.send(Method::PATCH, &one, &patch).await;
                assert!(rejected.is_none_or(|answer| answer.status == 409));
            }
        }
        if self.dice.below(4) == 0 {
            let twice = self.id(round, 1);
            let body = json!({ "id": twice, "loginName": name });
            if let Some(answer) = self.send(Method::POST, "/User", &body).await {
                assert_eq!(answer.status, 409);
                self.results.refused.push(twice);
            }
        }
        if self.dice.below(3) == 0 {
            self.change(subject, "deleted", (Method::DELETE, &one, json!(null))).await?;
        }
        Some(())
    }
}

/// Creates, changes and deletes users until stopped.
pub async fn write(
    number: usize,
    callers: Callers,
    progress: mpsc::Sender<()>,
    stopped: watch::Receiver<bool>,
) -> WriterReport {
    let mut writer = Writer {
        number,
        callers,
        progress,
        dice: RandomNumbers(number as u64),
        results: WriterReport::default(),
    };
    let mut round = 0;
    while !*stopped.borrow() {
        round += 1;
        let mut subject = Subject { id: writer.id(round, 0), ..Subject::default() };
        let is_complete = writer.live(round, &mut subject).await.is_some();
        writer.results.subjects.push(subject);
        if !is_complete {
            // the server is being started again
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    writer.results
}
