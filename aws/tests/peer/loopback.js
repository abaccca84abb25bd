// Keeps a server that would listen on every address to this machine.
const net = require('net');
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
    const [first] = args;
    if (first !== null && typeof first === 'object') return listen.call(this, { ...first, host: '127.0.0.1' }, ...args.slice(1));
    const rest = args.slice(1).filter((value) => typeof value !== 'string');
    return listen.call(this, first, '127.0.0.1', ...rest);
};
