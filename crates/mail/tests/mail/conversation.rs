//! The conversation with a mail server: with and without encryption and password.

use chancery_mail::{
    MailServer,
    sink::{Fault, Security, Sink, SinkConfig, Step},
};

use crate::{
    engine,
    fixture::{Fixture, MINUTE, NOW, delivered, mail},
};

const CREDENTIALS: Option<(&str, &str)> = Some(("mailer", "p\u{e4}ssword"));

/// Runs a test with one mail in an outbox and a sink of its own.
fn send(config: SinkConfig, server: impl FnOnce(&Sink) -> MailServer, then: impl AsyncFnOnce(Fixture, Sink)) {
    let (_folder, target) = engine::sqlite();
    engine::on(&target, async |store| {
        let sink = Sink::start(config).await.unwrap();
        let fixture = Fixture::new(store, server(&sink));
        fixture.queue(mail(1)).await;
        then(fixture, sink).await;
    });
}

/// The mail server of a configuration, allowed to be on this machine.
fn on_this_machine(config: &str) -> MailServer {
    MailServer::parse(config).unwrap().within(chancery_fetch::Networks::all())
}

fn trusted(sink: &Sink) -> MailServer {
    sink.server().unwrap()
}

#[test]
fn plain_where_nothing_else_is_offered() {
    send(SinkConfig::PLAIN, trusted, async |fixture, sink| {
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(1, 0, 0));
        let received = sink.received();
        assert_eq!(received.len(), 1);
        assert!(!received[0].encrypted && received[0].login.is_none());
        assert_eq!(received[0].from, "noreply@example.com");
        assert_eq!(received[0].to, ["user1@example.com"]);
        assert_eq!(received[0].subject(), "Ihr Kennwort bei Bücherei");
        assert!(received[0].text().contains("Guten Tag Jörg,") && received[0].text().contains("tulip"));
        assert!(received[0].html().contains("<code>tulip</code>"));
        assert_eq!(received[0].message_id(), "00000000-0000-0000-0000-000000000001@example.com");
    });
}

#[test]
fn encrypted_where_it_is_offered_or_required() {
    for security in [Security::StartTls, Security::Tls] {
        for mechanisms in ["PLAIN LOGIN", "LOGIN"] {
            let config = SinkConfig { security, credentials: CREDENTIALS, mechanisms, ..SinkConfig::PLAIN };
            send(config, trusted, async |fixture, sink| {
                assert_eq!(fixture.deliver(NOW, 1).await, delivered(1, 0, 0), "{config:?}");
                let received = sink.received();
                assert!(received[0].encrypted, "{config:?}");
                let first = mechanisms.split(' ').next().unwrap();
                assert_eq!(received[0].login, Some((first.to_owned(), "mailer".to_owned())));
            });
        }
    }
}

/// Keywords have no case (RFC 5321, section 2.4): an offer of TLS in small letters is one.
#[test]
fn extensions_of_a_server_are_read_in_any_case() {
    for security in [Security::None, Security::StartTls, Security::Tls] {
        let config = SinkConfig { security, credentials: CREDENTIALS, is_quiet: true, ..SinkConfig::PLAIN };
        send(config, trusted, async |fixture, sink| {
            assert_eq!(fixture.deliver(NOW, 1).await, delivered(1, 0, 0), "{security:?}");
            let received = sink.received();
            assert_eq!(received[0].encrypted, security != Security::None, "{security:?}");
            assert_eq!(received[0].login, Some(("PLAIN".to_owned(), "mailer".to_owned())));
        });
    }
}

/// LOGIN prompts for the user and then for the password, in the server's own words.
#[test]
fn a_server_asks_for_user_and_password_in_its_own_words() {
    for prompts in [["Username:", "Password:"], ["User", "Pass"], ["Benutzername", "Kennwort"], ["", ""]] {
        let config =
            SinkConfig { credentials: CREDENTIALS, mechanisms: "LOGIN", prompts, ..SinkConfig::PLAIN };
        send(config, trusted, async |fixture, sink| {
            assert_eq!(fixture.deliver(NOW, 1).await, delivered(1, 0, 0), "{prompts:?}");
            assert_eq!(sink.received()[0].login, Some(("LOGIN".to_owned(), "mailer".to_owned())));
        });
    }
}

/// RFC 4954, section 6: a required password or TLS is a fault of the configuration, at any step. The mail waits.
#[test]
fn a_refusal_of_the_settings_is_tried_again() {
    for code in ["530 5.7.0 tulip", "534 5.7.9 tulip", "535 5.7.8 tulip", "538 5.7.11 tulip"] {
        for step in [Step::From, Step::Recipient, Step::Data] {
            send(SinkConfig::PLAIN, trusted, async |fixture, sink| {
                sink.next(step, Fault::Reply(code));
                assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0), "{code} {step:?}");
                assert_eq!(fixture.deliver(NOW.plus(10 * MINUTE), 2).await, delivered(1, 0, 0));
            });
        }
    }
}

#[test]
fn an_untrusted_certificate_is_refused() {
    for security in [Security::StartTls, Security::Tls] {
        let config = SinkConfig { security, ..SinkConfig::PLAIN };
        let untrusted = |sink: &Sink| on_this_machine(&sink.config());
        send(config, untrusted, async |fixture, sink| {
            assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
            let (why, _) = fixture.last_error(1).await;
            assert!(why.to_lowercase().contains("certificate"), "{why}");
            assert!(sink.received().is_empty());
        });
    }
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    let config = SinkConfig { security: Security::Tls, ..SinkConfig::PLAIN };
    // the sink's certificate names 127.0.0.1 and localhost
    let other_host = |sink: &Sink| {
        let config = sink.config().replace("127.0.0.1", "127.0.0.2");
        on_this_machine(&config).trusting(sink.root().to_vec())
    };
    send(config, other_host, async |fixture, sink| {
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
        assert!(sink.received().is_empty());
    });
}

/// A wrong password is a fault of the configuration and not of the mail, which waits. The sink repeats the
/// password in its reply; it is not recorded.
#[test]
fn a_wrong_password_is_tried_again_and_never_shown() {
    let config = SinkConfig { security: Security::Tls, credentials: CREDENTIALS, ..SinkConfig::PLAIN };
    let wrong = |sink: &Sink| {
        let config = sink.config().replace("p\u{e4}ssword", "hyacinth");
        on_this_machine(&config).trusting(sink.root().to_vec())
    };
    send(config, wrong, async |fixture, sink| {
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
        assert_eq!(fixture.last_error(1).await.0, "the mail server answered 535 5.7.8");
        assert!(sink.received().is_empty());
    });
}

#[test]
fn an_address_that_the_server_cannot_read_is_final() {
    send(SinkConfig::PLAIN, trusted, async |fixture, sink| {
        fixture.deliver(NOW, 1).await;
        let mut unreadable = mail(2);
        unreadable.recipient = String::from("jörg@example.com");
        fixture.queue(unreadable).await;
        let mut international = mail(3);
        international.recipient = String::from("joerg@b\u{fc}cher.example");
        fixture.queue(international).await;
        assert_eq!(fixture.deliver(NOW, 2).await, delivered(1, 0, 1));
        assert_eq!(sink.received()[1].to, ["joerg@xn--bcher-kva.example"]);
    });
}

/// After any fault of the server at any step, the mail is sent later, once.
#[test]
fn a_mail_is_sent_after_any_fault_at_any_step() {
    let steps =
        [Step::Greeting, Step::Hello, Step::Auth, Step::From, Step::Recipient, Step::Data, Step::Content];
    // each stall takes the timeout of a second, so they stall together
    std::thread::scope(|scope| {
        for step in steps {
            scope.spawn(move || survive(step));
        }
    });
}

fn survive(step: Step) {
    let config = SinkConfig { credentials: CREDENTIALS, mechanisms: "PLAIN", ..SinkConfig::PLAIN };
    send(config, trusted, async |fixture, sink| {
        let mut now = NOW;
        let mut faults = vec![Fault::Drop, Fault::Stall];
        if step != Step::Content {
            faults.push(Fault::Reply("451 4.7.1 tulip, later"));
        }
        for (lease, fault) in (1..).zip(faults) {
            sink.next(step, fault);
            assert_eq!(fixture.deliver(now, lease).await, delivered(0, 1, 0), "{step:?} {fault:?}");
            let (why, retained_bytes) = fixture.last_error(1).await;
            assert!(!why.contains("tulip") && retained_bytes > 0, "{why}");
            now = now.plus(10 * MINUTE);
        }
        assert_eq!(fixture.deliver(now, 100).await, delivered(1, 0, 0), "{step:?}");
        assert_eq!(sink.received().len(), 1, "{step:?}");
        assert_eq!(fixture.counts().await, (0, 0));
    });
}

/// A11 and section 15: a mail server outside the public internet is not connected to, and the refusal says
/// how to allow it.
#[test]
fn a_server_in_our_own_network_is_not_called() {
    let private = |sink: &Sink| MailServer::parse(&sink.config()).unwrap().trusting(sink.root().to_vec());
    send(SinkConfig::PLAIN, private, async |fixture, sink| {
        assert_eq!(fixture.deliver(NOW, 1).await, delivered(0, 1, 0));
        let (why, _) = fixture.last_error(1).await;
        assert!(why.contains("CHANCERY_PRIVATE_DESTINATIONS"), "{why}");
        assert!(sink.received().is_empty());
    });
}
