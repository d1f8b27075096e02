-- For wrk: post the lines of a file in turn, and print a line of JSON at the end.
--     wrk -s sentences.lua URL -- FILE
local requests, number = {}, 0

function init(args)
  local headers = {["Content-Type"] = "application/json"}
  for body in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", wrk.path, headers, body)
  end
end

function request()
  number = number % #requests + 1
  return requests[number]
end

function done(summary, latency, _)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "seconds": %.3f, "p50_ms": %.2f, "p95_ms": %.2f, ' ..
    '"p99_ms": %.2f, "max_ms": %.2f, "statuses": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(95) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3,
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
