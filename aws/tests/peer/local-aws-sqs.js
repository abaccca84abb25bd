// Starts local-aws-sqs from its own folder. It knows the attributes of a received message by the name that SQS gave them
// before 2024 only, so the newer name becomes the older one on its way in.
const http = require('http');
const { Readable } = require('stream');
const { createRequestHandler } = require(process.cwd());

const [host, port] = ['127.0.0.1', Number(process.argv[2])];
// A queue can be made again at once after it was deleted.
const { requestHandler } = createRequestHandler({ hostname: host, port, emulateQueueCreationLifecycle: false });

http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
        const body = Buffer.concat(chunks).toString().replace('"MessageSystemAttributeNames":', '"AttributeNames":');
        requestHandler(Object.assign(Readable.from([body]), { headers: request.headers }), response);
    });
}).listen(port, host);
