"""The functions of the stack: the emulator runs those that respond at once, this module those that stream."""

import json
import os
import re
import threading
import urllib.request
import zipfile

from runtime_api import Environment


class Functions:
    """Invokes the functions that the API names."""

    def __init__(self, deployment):
        self.deployment, self.emulator = deployment, deployment.emulator
        # The threads of the gateway share these; only the making of a client is not thread-safe.
        self.lambdas, self.sts = deployment.lambdas, self.emulator.client("sts")
        self.running, self.known, self.lock = {}, {}, threading.Lock()

    def of(self, uri):
        """The ARN of the function that a URI of the API names."""
        return re.search(r"/functions/(arn:[^/]+)/", uri)[1]

    def invoke(self, function, event):
        """The response of an invocation that does not stream, and whether it is an error."""
        done = self.lambdas.invoke(FunctionName=function, Payload=json.dumps(event).encode())
        return json.loads(done["Payload"].read() or b"null"), "FunctionError" in done

    def stream(self, function, event, seconds):
        """The response of an invocation that streams, as soon as it begins."""
        with self.lock:
            running = self.running.setdefault(function, [])
            running[:] = [it for it in running if it.alive]
            environment = next((it for it in running if not it.claimed), None)
            if environment is None:
                environment = self._start(function)
                running.append(environment)
            environment.claimed = True
        return environment.invoke(event, seconds, function)

    def _start(self, function):
        config, folder = self._configuration(function)
        session = self.sts.assume_role(RoleArn=config["Role"], RoleSessionName=config["FunctionName"])
        keys = session["Credentials"]
        variables = config["Environment"]["Variables"] | {
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
            "AWS_ENDPOINT_URL": self.emulator.url,
            "AWS_LAMBDA_FUNCTION_NAME": config["FunctionName"],
            "AWS_LAMBDA_FUNCTION_VERSION": config["Version"],
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config["MemorySize"]),
            "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
            "LAMBDA_TASK_ROOT": str(folder),
            "PATH": os.environ["PATH"],
        }
        with open(self.emulator.folder / f"{config['FunctionName']}.log", "ab") as log:
            return Environment(folder / "bootstrap", variables, folder, log)

    def _configuration(self, function):
        """The configuration of the version, and a folder with its code."""
        if function in self.known:
            return self.known[function]
        found = self.lambdas.get_function(FunctionName=function)
        config = found["Configuration"]
        folder = self.emulator.folder / "code" / config["FunctionName"]
        packed = self.emulator.folder / f"{config['FunctionName']}.fetched"
        with urllib.request.urlopen(found["Code"]["Location"]) as code:
            packed.write_bytes(code.read())
        with zipfile.ZipFile(packed) as archive:
            archive.extractall(folder)
        packed.unlink()
        (folder / "bootstrap").chmod(0o755)
        self.known[function] = config, folder
        return config, folder

    def refresh(self):
        """What Lambda does when a function changes: the next invocation gets another environment."""
        for function, (config, _) in list(self.known.items()):
            if self.lambdas.get_function_configuration(FunctionName=function)["RevisionId"] != config["RevisionId"]:
                del self.known[function]
                self._stop(function)

    def _stop(self, function):
        with self.lock:
            for environment in self.running.pop(function, ()):
                environment.stop()

    def restart(self, name):
        """Ends the processes of a function, so that it knows nothing any more."""
        self.emulator.kill(name)
        for function in [it for it in self.running if re.search(f":{name}(:|$)", it)]:
            self._stop(function)

    def stop(self):
        """Ends the processes of the functions that stream."""
        with self.lock:
            for environment in (it for running in self.running.values() for it in running):
                environment.stop()
