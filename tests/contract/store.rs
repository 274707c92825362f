//! The guarantees of the store, on both engines: the contract that every operation relies on.

use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};

use chancery_record::{Kind, Value};
use chancery_store::{Class, Error, Health, Mode, Settings, Store, Tx, raw};
use chancery_testkit::{World, on_both_engines};
use uuid::Uuid;

const TABLE: &str = "CREATE TABLE thing (name TEXT NOT NULL, number BIGINT, flag BOOLEAN)";

async fn write<T: Send + 'static>(
    store: &Store,
    run: impl FnMut(&mut Tx<'_>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    store.run("Test", Mode::Write, None, run).await
}

async fn things(store: &Store) -> Store {
    write(store, |tx| {
        raw::execute(tx, TABLE, &[])?;
        raw::execute(tx, "CREATE UNIQUE INDEX thing__name ON thing (name)", &[])
    })
    .await
    .unwrap();
    store.clone()
}

async fn names(world: &World) -> Vec<String> {
    let read = world.app.store.run("Test", Mode::Long, None, |tx| {
        let mut names = Vec::new();
        tx.query("SELECT name FROM thing ORDER BY name", &[], |row| {
            names.push(row.text(0)?.to_owned());
            Ok(())
        })?;
        Ok::<_, Error>(names)
    });
    read.await.unwrap()
}

fn insert(tx: &mut Tx<'_>, name: &str) -> Result<(), Error> {
    raw::queue(tx, "INSERT INTO thing (name, number) VALUES (?1, 0)", vec![name.into()])
}

on_both_engines! {
    /// Reads cannot write: rows of resources cannot bypass the engine.
    async fn a_query_cannot_write(world: World) {
        let store = things(&world.app.store).await;
        write(&store, |tx| insert(tx, "a")).await.unwrap();
        for text in ["DELETE FROM thing RETURNING name", "  UPDATE thing SET name = 'b'", "INSERT INTO thing (name) VALUES ('b')"] {
            let refused = write(&store, move |tx| tx.query(text, &[], |_| Ok(()))).await;
            assert!(matches!(refused, Err(Error::Internal(_))), "{refused:?}");
        }
        assert_eq!(names(&world).await, ["a"]);
    }

    async fn an_error_rolls_everything_back(world: World) {
        let store = things(&world.app.store).await;
        let refused = write(&store, |tx| {
            insert(tx, "a")?;
            Err::<(), _>(Error::Reference)
        });
        assert_eq!(refused.await, Err(Error::Reference));
        let refused = write(&store, |tx| {
            insert(tx, "b")?;
            insert(tx, "b")?;
            tx.flush()
        });
        assert_eq!(refused.await, Err(Error::Unique("thing__name".into())), "both engines name the index");
        let panicked = write(&store, |tx| {
            insert(tx, "c")?;
            assert!(tx.flush().is_err(), "on purpose");
            Ok(())
        });
        assert!(matches!(panicked.await, Err(Error::Internal(_))));
        assert!(names(&world).await.is_empty());
        write(&store, |tx| insert(tx, "d")).await.unwrap();
        assert_eq!(names(&world).await, ["d"], "the store goes on");
    }

    async fn a_failure_does_not_harm_its_neighbours(world: World) {
        let store = things(&world.app.store).await;
        write(&store, |tx| insert(tx, "taken")).await.unwrap();
        let writes = (0..200).map(|number| {
            let store = store.clone();
            chancery_testkit::spawn(async move {
                write(&store, move |tx| {
                    insert(tx, &format!("n{number}"))?;
                    if number % 3 == 0 {
                        insert(tx, "taken")?;
                    }
                    tx.flush()
                })
                .await
            })
        });
        for (number, write) in writes.collect::<Vec<_>>().into_iter().enumerate() {
            assert_eq!(write.await.unwrap().is_ok(), number % 3 != 0);
        }
        assert_eq!(names(&world).await.len(), 134);
    }

    async fn a_read_that_decides_a_write_is_right(world: World) {
        let store = things(&world.app.store).await;
        write(&store, |tx| insert(tx, "counter")).await.unwrap();
        let adds = (0..64).map(|_| {
            let store = store.clone();
            chancery_testkit::spawn(async move {
                write(&store, |tx| {
                    let number = tx.one("SELECT number FROM thing", &[], |row| row.int(0))?.unwrap();
                    raw::queue(tx, "UPDATE thing SET number = ?1", vec![Value::Int(number + 1)])
                }).await
            })
        });
        let mut done = 0;
        for add in adds.collect::<Vec<_>>() {
            done += i64::from(add.await.unwrap().is_ok());
        }
        let read = store.run("Test", Mode::Quick, None, |tx| tx.one("SELECT number FROM thing", &[], |row| row.int(0)));
        assert_eq!(read.await.unwrap(), Some(done), "nothing is lost, whatever was retried");
        assert!(done > 0);
    }

    async fn an_old_epoch_stops_an_operation_before_it_starts(world: World) {
        let store = things(&world.app.store).await;
        let epoch = store.run("Test", Mode::Quick, None, |tx| tx.epoch()).await.unwrap();
        let stale = store.run("Test", Mode::Write, Some(epoch + 1), |tx| insert(tx, "a"));
        assert_eq!(stale.await, Err(Error::Stale));
        let stale = store.run("Test", Mode::Quick, Some(epoch - 1), |tx| tx.one("SELECT 1", &[], |row| row.int(0)));
        assert_eq!(stale.await, Err(Error::Stale));
        write(&store, |tx| tx.advance_epoch()).await.unwrap();
        let stale = store.run("Test", Mode::Write, Some(epoch), |tx| insert(tx, "b"));
        assert_eq!(stale.await, Err(Error::Stale));
        // an operation without a database query might be stale, too
        for mode in [Mode::Quick, Mode::Long, Mode::Write] {
            let stale = store.run("Test", mode, Some(epoch), |_| Ok::<_, Error>(()));
            assert_eq!(stale.await, Err(Error::Stale), "{mode:?}");
        }
        // a refusal without a database query might be stale
        let stale = store.run("Test", Mode::Write, Some(epoch), |_| Err::<(), _>(Error::Reference));
        assert_eq!(stale.await, Err(Error::Stale));
        assert!(names(&world).await.is_empty());
        store.run("Test", Mode::Write, Some(epoch + 1), |tx| insert(tx, "c")).await.unwrap();
    }

    /// Values read in a transaction are cached for others by the epoch only where they are committed, and of one snapshot.
    async fn an_epoch_is_settled_where_all_that_is_read_is_committed(world: World) {
        let store = things(&world.app.store).await;
        let epoch = store.epoch().await.unwrap();
        for (mode, known) in [(Mode::Write, Some(epoch)), (Mode::Write, None), (Mode::Long, None)] {
            let settled = store.run("Test", mode, known, |tx| tx.settled_epoch());
            assert_eq!(settled.await.unwrap(), Some(epoch), "{mode:?}, {known:?}");
        }
        let is_snapshot = store.engine() == "sqlite";
        let quick = store.run("Test", Mode::Quick, Some(epoch), |tx| tx.settled_epoch());
        assert_eq!(quick.await.unwrap(), is_snapshot.then_some(epoch));
        let advancing = write(&store, |tx| {
            let before = tx.settled_epoch()?;
            tx.advance_epoch()?;
            Ok((before, tx.settled_epoch()?, tx.epoch()?))
        });
        assert_eq!(advancing.await.unwrap(), (Some(epoch), None, epoch + 1));
        assert_eq!(write(&store, |tx| tx.settled_epoch()).await.unwrap(), Some(epoch + 1));
    }

    async fn a_try_answers_and_leaves_nothing(world: World) {
        let store = things(&world.app.store).await;
        let tried = write(&store, |tx| {
            tx.set_dry_run();
            insert(tx, "a")?;
            tx.one("SELECT count(*) FROM thing", &[], |row| row.int(0))
        });
        assert_eq!(tried.await.unwrap(), Some(1));
        let tried = write(&store, |tx| {
            tx.set_dry_run();
            insert(tx, "a")?;
            insert(tx, "a")
        });
        assert!(tried.await.is_err(), "what is wrong is found in a try too");
        assert!(names(&world).await.is_empty());
    }

    async fn a_statement_that_must_change_a_row_does(world: World) {
        let store = things(&world.app.store).await;
        let nothing = write(&store, |tx| {
            insert(tx, "a")?;
            raw::queue_one(tx, "UPDATE thing SET number = 1 WHERE name = ?1", vec!["nobody".into()])
        });
        assert_eq!(nothing.await, Err(Error::Retry));
        assert!(names(&world).await.is_empty(), "not even with the commit right behind it");
        write(&store, |tx| {
            insert(tx, "a")?;
            raw::queue_one(tx, "UPDATE thing SET number = 1 WHERE name = ?1", vec!["a".into()])
        }).await.unwrap();
    }

    async fn values_come_back_as_they_went(world: World) {
        let (id, bytes) = (Uuid::from_u128(7), vec![0_u8, 255, 7]);
        let text = "CREATE TABLE every (a BIGINT, b BOOLEAN, c TEXT)".to_owned();
        write(&world.app.store, move |tx| raw::execute(tx, &text, &[])).await.unwrap();
        let values = [Value::Int(i64::MIN), Value::Bool(true), Value::Text("\u{1}ü漢😀'\"".into())];
        let expected = values.clone();
        write(&world.app.store, move |tx| raw::queue(tx, "INSERT INTO every VALUES (?1, ?2, ?3)", values.to_vec())).await.unwrap();
        write(&world.app.store, |tx| raw::queue(tx, "INSERT INTO every VALUES (?1, ?2, ?3)", vec![Value::Null; 3])).await.unwrap();
        let read = world.app.store.run("Test", Mode::Quick, None, move |tx| {
            let mut rows = Vec::new();
            tx.query("SELECT a, b, c FROM every", &[], |row| {
                let kinds = [Kind::Int { min: 0, max: 0 }, Kind::Bool, Kind::Time];
                rows.push(kinds.iter().enumerate().map(|(column, kind)| row.value(column, kind)).collect::<Result<Vec<_>, _>>()?);
                Ok(())
            })?;
            Ok::<_, Error>(rows)
        });
        let rows = read.await.unwrap();
        assert!(rows.contains(&expected.to_vec()) && rows.contains(&vec![Value::Null; 3]));
        // ids and bytes, in the tables that have them
        write(&world.app.store, move |tx| raw::queue(tx,
            "INSERT INTO idempotent_answer (caller, key_digest, request_digest, attempt, started_on) VALUES (?1, ?2, ?2, ?1, 1)",
            vec![Value::Id(id), Value::Bytes(bytes.clone())],
        )).await.unwrap();
        let read = world.app.store.run("Test", Mode::Quick, None, move |tx| {
            tx.one("SELECT caller, key_digest FROM idempotent_answer WHERE caller = ?1", &[Value::Id(id)], |row| {
                Ok((row.id(0)?, row.bytes(1)?.to_vec()))
            })
        });
        assert_eq!(read.await.unwrap(), Some((id, vec![0, 255, 7])));
    }

    async fn text_compares_by_bytes(world: World) {
        let store = things(&world.app.store).await;
        write(&store, |tx| {
            for name in ["b", "B", "a", "ä", "Z", "_", "a b", "aB", "😀", "\u{ffff}"] {
                insert(tx, name)?;
            }
            Ok(())
        }).await.unwrap();
        let mut expected = vec!["b", "B", "a", "ä", "Z", "_", "a b", "aB", "😀", "\u{ffff}"];
        expected.sort_unstable();
        assert_eq!(names(&world).await, expected);
    }

    async fn long_queues_leave_in_order(world: World) {
        let store = things(&world.app.store).await;
        write(&store, |tx| {
            for number in 0..600 {
                insert(tx, &format!("n{number}"))?;
                raw::queue(tx, "UPDATE thing SET number = number + 1 WHERE name = 'n0'", vec![])?;
                if number % 100 == 0 {
                    tx.one("SELECT count(*) FROM thing", &[], |row| row.int(0))?;
                }
            }
            Ok(())
        }).await.unwrap();
        let read = store.run("Test", Mode::Quick, None, |tx| {
            tx.one("SELECT number FROM thing WHERE name = ?1", &["n0".into()], |row| row.int(0))
        });
        assert_eq!(read.await.unwrap(), Some(600));
    }

    async fn many_readers_and_writers_share_it(world: World) {
        let store = Arc::new(things(&world.app.store).await);
        let jobs = (0..120).map(|number| {
            let store = Arc::clone(&store);
            chancery_testkit::spawn(async move {
                if number % 4 == 0 {
                    write(&store, move |tx| insert(tx, &format!("n{number}"))).await.unwrap();
                } else {
                    let mode = if number % 2 == 0 { Mode::Long } else { Mode::Quick };
                    store.run("Test", mode, None, |tx| tx.one("SELECT count(*) FROM thing", &[], |row| row.int(0))).await.unwrap();
                }
            })
        });
        for job in jobs.collect::<Vec<_>>() {
            job.await.unwrap();
        }
        assert_eq!(names(&world).await.len(), 30);
    }

    /// Read in the code (C): a dead writer is reported as such, not as overload; the program
    /// ends itself by it.
    async fn a_lane_that_dies_breaks_the_store(world: World) {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                assert!(std::thread::panicking(), "on purpose");
            }
        }
        let store = things(&world.app.store).await;
        let running = Box::pin(write(&store, |_| {
            // its caller is dropped meanwhile, so that the lane drops the answer
            std::thread::sleep(Duration::from_millis(300));
            Ok(Bomb)
        }));
        assert!(tokio::time::timeout(Duration::from_millis(100), running).await.is_err());
        let refused = tokio::time::timeout(chancery_testkit::PATIENCE, async {
            loop {
                let outcome = write(&store, |tx| insert(tx, "a")).await;
                if matches!(outcome, Err(Error::Unavailable(_))) {
                    break;
                }
            }
        });
        refused.await.unwrap();
        assert_eq!(world.app.store.health(), Health::Unavailable);
    }

    /// Section 5: work that waited three seconds for the store is refused before it runs, with `Retry-After`;
    /// background work waits.
    async fn work_that_waits_too_long_is_refused(world: World) {
        let gate = Arc::new((Mutex::new(false), Condvar::new()));
        let held: Vec<_> = (0..Settings::default().connections)
            .map(|_| {
                let (store, gate) = (world.app.store.clone(), Arc::clone(&gate));
                chancery_testkit::spawn(async move {
                    write(&store, move |_| {
                        drop(gate.1.wait_while(gate.0.lock().unwrap(), |open| !*open).unwrap());
                        Ok(())
                    })
                    .await
                })
            })
            .collect();
        let path = world.path("/User");
        world.admin.get(&path).await.expect(200);
        let refused = world.admin.post(&path, serde_json::json!({ "loginName": "ada" })).await;
        let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=5).contains(&wait));
        refused.problem(503, "unavailable");
        assert!(world.app.store.figures().shed > 0);
        let own = world.app.store.with(Class::Background);
        let own = chancery_testkit::spawn(async move { write(&own, |tx| tx.epoch()).await });
        *gate.0.lock().unwrap() = true;
        gate.1.notify_all();
        own.await.unwrap().unwrap();
        for held in held {
            assert!(matches!(held.await.unwrap(), Ok(()) | Err(Error::Busy)));
        }
        world.user("ada").await;
    }
}
