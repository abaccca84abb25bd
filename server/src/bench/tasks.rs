//! Tasks that do the same at the same time, each with one step in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_engine::SystemClock;
use anabranch_model::Clock;
use tokio::sync::Barrier;

use crate::failure::Failure;

/// What one of the tasks does again and again.
pub(crate) trait Task: Send + 'static {
    /// Does it for the time with this number, counted from zero.
    fn step(&mut self, number: usize) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Waits for what its steps have left under way.
    fn finish(&mut self) -> impl Future<Output = Result<(), Failure>> + Send {
        async { Ok(()) }
    }
}

/// What tasks achieved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Steps that were done, of all tasks together.
    pub(crate) steps: u64,
    /// From the first step until nothing is under way.
    pub(crate) elapsed: Duration,
}

impl Done {
    /// Steps a second.
    pub(crate) fn per_second(&self) -> f64 {
        self.steps as f64 / self.elapsed.as_secs_f64()
    }
}

/// Lets all tasks go until the first has done `steps` or the time is over: all of them are at work all of the time.
pub(crate) async fn race<T: Task>(tasks: Vec<T>, steps: usize, at_most: Duration) -> Result<Done, Failure> {
    run(tasks, steps, Some(at_most)).await
}

/// Lets every task do all of its steps, however long that takes.
pub(crate) async fn finish<T: Task>(tasks: Vec<T>, steps: usize) -> Result<Done, Failure> {
    run(tasks, steps, None).await
}

async fn run<T: Task>(tasks: Vec<T>, steps: usize, at_most: Option<Duration>) -> Result<Done, Failure> {
    let clock = SystemClock::new();
    let (stop, start) = (Arc::new(AtomicBool::new(false)), Arc::new(Barrier::new(tasks.len() + 1)));
    let mut running = Vec::new();
    for mut task in tasks {
        let (stop, start) = (stop.clone(), start.clone());
        running.push(tokio::spawn(async move {
            start.wait().await;
            let deadline = at_most.map(|at_most| clock.elapsed() + at_most);
            let mut done = 0;
            for number in 0..steps {
                let over = deadline.is_some_and(|deadline| clock.elapsed() > deadline);
                if over || stop.load(Ordering::Relaxed) {
                    break;
                }
                task.step(number).await?;
                done += 1;
            }
            if at_most.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
            task.finish().await?;
            Ok::<u64, Failure>(done)
        }));
    }
    // Before they may begin, so that what they take is never more than what is told.
    let begun = clock.elapsed();
    start.wait().await;
    let mut done = 0;
    for task in running {
        done += task.await.map_err(|error| {
            Failure::new("bench", format!("a task did not end: {error}"), "report this")
        })??;
    }
    Ok(Done { steps: done, elapsed: clock.elapsed() - begun })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// Yields, or fails when it is asked for more than it is made for.
    struct Counting {
        steps_max: usize,
    }

    impl Task for Counting {
        async fn step(&mut self, number: usize) -> Result<(), Failure> {
            tokio::task::yield_now().await;
            if number < self.steps_max {
                return Ok(());
            }
            Err(Failure::new("bench", "one step too many", "report this"))
        }
    }

    fn tasks(count: usize, steps_max: usize) -> Vec<Counting> {
        (0..count).map(|_| Counting { steps_max }).collect()
    }

    #[tokio::test]
    async fn every_task_finishes_all_of_its_steps() {
        assert_eq!(finish(tasks(3, 5), 5).await.unwrap().steps, 15);
    }

    /// Leaves its steps under way.
    struct Leaving(u64, Arc<AtomicU64>);

    impl Task for Leaving {
        async fn step(&mut self, _: usize) -> Result<(), Failure> {
            self.0 += 1;
            Ok(())
        }

        async fn finish(&mut self) -> Result<(), Failure> {
            tokio::task::yield_now().await;
            self.1.fetch_add(self.0, Ordering::Relaxed);
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_is_under_way_is_waited_for() {
        let finished = Arc::new(AtomicU64::new(0));
        let tasks = (0..3).map(|_| Leaving(0, finished.clone())).collect();
        let done = race(tasks, 4, Duration::from_secs(60)).await.unwrap();
        assert_eq!(finished.load(Ordering::Relaxed), done.steps);
    }

    #[tokio::test]
    async fn the_first_that_is_done_ends_a_race() {
        let done = race(tasks(3, 5), 5, Duration::from_secs(60)).await.unwrap();
        assert!((5..=15).contains(&done.steps), "{done:?}");
    }

    #[tokio::test]
    async fn a_race_ends_when_its_time_is_over() {
        let done = race(tasks(2, usize::MAX), usize::MAX, Duration::from_millis(100)).await.unwrap();
        assert!(done.steps > 0 && done.elapsed >= Duration::from_millis(100), "{done:?}");
    }

    #[tokio::test]
    async fn a_step_that_fails_is_a_failure() {
        assert!(finish(tasks(2, 3), 4).await.is_err());
    }

    #[test]
    fn rates_are_steps_over_time() {
        assert_eq!(Done { steps: 30, elapsed: Duration::from_millis(1500) }.per_second(), 20.0);
    }
}
