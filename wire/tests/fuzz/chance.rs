//! Numbers that look like chance and are the same at every run.

use anabranch_model::Dice;

/// A case's own numbers.
pub struct Chance(Dice);

impl Chance {
    pub fn new(seed: u64, case: u64) -> Self {
        // The first number of a run's own dice, so that neighbouring cases have nothing in common.
        let run = Dice::new(seed).roll();
        Chance(Dice::new(Dice::new(run ^ case).roll()))
    }

    /// A number below `end`; zero if there is none.
    pub fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { (self.0.roll() % end as u64) as usize }
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    pub fn one_of<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
