//! What can be wrong with a store of blobs.

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Keeps the first 65,535 bytes of a body.
    CutsBodies,
    /// Keeps the first piece of a body.
    TakesFirstPieceOnly,
    /// Makes etags of the size.
    TagsCountPuts,
    /// Loses headers and metadata.
    ForgetsProperties,
    /// Leaves the headers and metadata of a replaced blob.
    KeepsOldProperties,
    /// Shows the time of the first put everywhere.
    TimesAreOfTheFirstPut,
    /// Returns one byte less from a range with an end.
    RangesEndEarly,
    /// Returns the whole body for a part of it.
    PartsAreWhole,
    /// Returns the whole body for a range outside of it.
    BadRangesAreWhole,
    /// Goes on reading what is there now.
    ReadersSeeOverwrites,
    /// Reads whatever the condition.
    IgnoresReadConditions,
    /// Writes and deletes whatever the condition.
    IgnoresWriteConditions,
    /// Decides a condition before the body is taken, and not again.
    DecidesConditionsEarly,
    /// Takes a key for a path.
    NormalisesKeys,
    /// Takes capitals for small letters.
    IgnoresCase,
    /// Loses the last byte of the longest keys.
    CutsKeys,
    /// Takes a key with a slash at its end for the one without.
    SlashIsAFolder,
    /// Removes all keys that begin like the deleted one.
    DeletesWhatBeginsAlike,
    /// Lists in the order of UTF-16.
    ListsByUtf16,
    /// Shows keys in place of what they share.
    IgnoresDelimiters,
    /// Starts at the first key if the one to start behind does not exist.
    StartsAtTheFirstKey,
    /// Puts everything on one page.
    IgnoresLimits,
    /// Leaves out the first entry of every page but the first.
    PagesSkip,
    /// Says of the first page that it is the last.
    FirstPageIsLast,
    /// Lists other sizes than a look shows.
    ListsWrongSizes,
    /// Makes copies without a body.
    CopiesAreEmpty,
    /// Makes copies without properties.
    CopiesDropProperties,
    /// Has nothing against copies that change nothing.
    CopiesOntoThemselves,
    /// Loses checksums.
    ForgetsChecksums,
    /// Compares no checksum and no size.
    TakesDamagedBodies,
    /// Takes an error for the end of a body.
    TakesBrokenBodies,
    /// Shows a blob before its body has ended.
    ShowsHalfPuts,
    /// Removes a blob a moment before another takes its place.
    HidesReplacedBlobs,
    /// Finds puts that were under way after a crash, with half of their bodies.
    KeepsHalfPutsInACrash,
    /// Joins the first of the chosen parts only.
    JoinsFirstPartOnly,
    /// Keeps the first part of a number.
    FirstPartCounts,
    /// Shows parts as blobs.
    PartsAreBlobs,
    /// Lists one upload a key, and ends all of a key with one.
    UploadsShareAKey,
    /// Says that an upload was aborted, and keeps it.
    AbortsNothing,
    /// Takes part 10,000 for part 1.
    NumbersWrapAround,
    /// Keeps an upload that was completed.
    CompletedUploadsStay,
    /// Completes with whatever parts there are, in whatever order.
    TakesAnyCompletion,
    /// Says that a blob was deleted, and keeps it.
    DeletesNothing,
    /// Deletes the first of many keys only.
    DeletesFirstOnly,
    /// Says that it deleted any number of keys.
    TakesAnyNumberOfKeys,
    /// Says that it made a bucket that was there before.
    MakesBucketsAgain,
    /// Deletes buckets with their blobs.
    DeletesFullBuckets,
    /// Says that it deleted a bucket with uploads, and keeps it.
    UploadsOutliveBuckets,
    /// Has one set of keys for all buckets.
    BucketsShareKeys,
    /// Says that it does not know the blob when it does not know the bucket.
    MistakesTheUnknown,
    /// Takes properties that are not allowed, without them.
    TakesBadProperties,
    /// Does not look at the declared size.
    TakesLargeBodies,
    /// Loses the last change in a crash.
    LosesLastChange,
}
