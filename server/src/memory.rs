//! Makes the allocator of glibc give memory back.
//!
//! Left alone, it learns from the first large buffer that is freed to keep buffers of that size, up to 20 MiB for
//! each thread that ever made one: after a burst of large reads the process stays at hundreds of megabytes, whatever
//! the byte budget says. With fixed thresholds it stays near the budget, at the price of fresh pages for large
//! buffers.

/// Buffers of this size and more are mapped alone and unmapped when they are freed. Smaller ones, which most batches
/// are, are recycled.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_BYTES_MIN: libc::c_int = 1 << 20;
/// Free bytes that a thread keeps.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES_MAX: libc::c_int = 2 << 20;

/// Fixes the thresholds. Called before there are threads.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_early() {
    #[expect(
        unsafe_code,
        reason = "mallopt has no safe face; with valid parameters it only sets two numbers"
    )]
    // SAFETY: both parameters are documented, and no other thread exists that could allocate at the same time.
    unsafe {
        // A refusal leaves the defaults, which work as well and take more memory.
        let _ = libc::mallopt(libc::M_MMAP_THRESHOLD, MAPPED_BYTES_MIN);
        let _ = libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES_MAX);
    }
}

/// Other allocators give memory back by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_early() {}
