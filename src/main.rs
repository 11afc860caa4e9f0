//! The `portcullis` command.

/// The memory allocator. mimalloc halves the time of parsing JSON, and the memory use of a busy server stays constant.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    portcullis::cli::main()
}
