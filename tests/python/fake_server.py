"""A server with answers set by tests: those that a real server never gives, and those that it would have to train for."""
from concurrent import futures

import grpc
import served
import service
from google.protobuf.message import Message
from lengthwise._proto import catalogue_service_pb2, event_pb2, experiment_service_pb2
from lengthwise.connection import Connection, Settings

STREAMS = {"WatchExperiment", "DownloadModel", "QueryAnalyses", "QueryAttentionMaps", "QueryProjections"}
REQUESTS = {
    "GetExperiment": experiment_service_pb2.GetExperimentRequest,
    "FindExperiment": experiment_service_pb2.FindExperimentRequest,
    "ListExperiments": experiment_service_pb2.ListExperimentsRequest,
    "GetTrial": experiment_service_pb2.GetTrialRequest,
    "ListTrials": experiment_service_pb2.ListTrialsRequest,
    "SummarizeExperiment": experiment_service_pb2.SummarizeExperimentRequest,
    "WatchExperiment": experiment_service_pb2.WatchExperimentRequest,
    "DownloadModel": experiment_service_pb2.DownloadModelRequest,
    "QueryAnalyses": experiment_service_pb2.QueryAnalysesRequest,
    "QueryLossCurves": experiment_service_pb2.QueryLossCurvesRequest,
    "QueryAttentionMaps": experiment_service_pb2.QueryAttentionMapsRequest,
    "QueryLengthAccuracies": experiment_service_pb2.QueryLengthAccuraciesRequest,
    "QueryProjections": experiment_service_pb2.QueryProjectionsRequest,
    "ListCatalogueEntries": catalogue_service_pb2.ListCatalogueEntriesRequest,
}


class FakeServer(grpc.GenericRpcHandler):
    def __init__(self) -> None:
        self.experiments: dict[str, experiment_service_pb2.Experiment] = {}
        self.trials: dict[str, experiment_service_pb2.Trial] = {}
        # By trial.
        self.histories: dict[str, list[event_pb2.Event]] = {}
        self.models: dict[str, list[experiment_service_pb2.DownloadModelResponse]] = {}
        self.maps: dict[str, list[event_pb2.AttentionMap]] = {}
        self.evaluations: list[experiment_service_pb2.QueryLengthAccuraciesResponse.Evaluation] = []
        self.analyses: list[event_pb2.Event] = []
        # The catalogue's entries.
        self.entries = [catalogue_service_pb2.CatalogueEntry(kind=catalogue_service_pb2.TASK, name="bucket_sort")]
        self.summary = experiment_service_pb2.SummarizeExperimentResponse()
        self._server = grpc.server(futures.ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((self,))
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()
        self.address = f"127.0.0.1:{port}"
        self.connection = Connection(Settings(server=self.address), timeout=service.DEADLINE)

    def close(self) -> None:
        self.connection.close()
        self._server.stop(None).wait()

    def add_experiment(self, name: str, encodings: list) -> None:
        """Adds trials of bucket sort, one for each encoding, trained on lengths up to 2."""
        experiment = experiment_service_pb2.Experiment(name=f"experiments/{name}", owner="ada")
        experiment.specification.name = name.rpartition("-")[0]
        experiment.specification.evaluation.seen_up_to = 2
        self.experiments[experiment.name] = experiment
        for index, encoding in enumerate(encodings):
            trial = experiment_service_pb2.Trial(
                name=f"{experiment.name}/trials/bucket_sort-{encoding}", index=index, state=event_pb2.SUCCEEDED
            )
            specification = trial.specification
            specification.task.name, specification.network.name = "bucket_sort", "encoder"
            specification.encoding.name = encoding
            specification.learning_rate = 0.001
            specification.evaluation.seen_up_to = 2
            trial.create_time.seconds = 1_700_000_000
            self.trials[trial.name] = trial

    def set_model(self, trial: str, data: bytes, sha256: str) -> None:
        checkpoint = event_pb2.Checkpoint(sha256=sha256, size_bytes=len(data))
        answers = [experiment_service_pb2.DownloadModelResponse(checkpoint=checkpoint, step=200)]
        answers += [
            experiment_service_pb2.DownloadModelResponse(data=data[start : start + 65536])
            for start in range(0, len(data), 65536)
        ]
        self.models[trial] = answers

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        method = details.method.rpartition("/")[2]

        def answer(request: Message, context: grpc.ServicerContext):
            found = getattr(self, f"_{method}")(request)
            if found is None:
                context.abort(grpc.StatusCode.NOT_FOUND, f"there is no {getattr(request, 'name', '') or request.text}")
            return found

        handler = grpc.unary_stream_rpc_method_handler if method in STREAMS else grpc.unary_unary_rpc_method_handler
        return handler(
            answer, request_deserializer=REQUESTS[method].FromString, response_serializer=lambda one: one.SerializeToString()
        )

    def _GetExperiment(self, request):
        return self.experiments.get(request.name)

    def _FindExperiment(self, request):
        """By the name of an experiment or its specification, and by the id or index of a trial."""
        name, _, text = request.text.removeprefix("experiments/").replace("/trials/", "/").partition("/")
        found = [one for one in self.experiments.values() if name in (one.name.partition("/")[2], one.specification.name)]
        if not found:
            return None
        trials = self._trials_of(found[0].name)
        chosen = [one for one in trials if text in (one.name.rpartition("/")[2], str(one.index))]
        if text and not chosen:
            return None
        return experiment_service_pb2.FindExperimentResponse(
            experiment=found[0], trial=chosen[0] if text else None, match="FULL_NAME"
        )

    def _ListExperiments(self, request):
        return experiment_service_pb2.ListExperimentsResponse(experiments=self.experiments.values())

    def _GetTrial(self, request):
        return self.trials.get(request.name)

    def _trials_of(self, experiment):
        trials = [trial for trial in self.trials.values() if trial.name.startswith(f"{experiment}/")]
        for trial in trials:
            served.set_trained(trial)
        return trials

    def _ListTrials(self, request):
        return experiment_service_pb2.ListTrialsResponse(trials=self._trials_of(request.parent))

    def _SummarizeExperiment(self, request):
        return self.summary

    def _WatchExperiment(self, request):
        events = self.histories.get(request.name, [])
        yield experiment_service_pb2.WatchExperimentResponse(events=events, caught_up=True)

    def _DownloadModel(self, request):
        return iter(self.models[request.name]) if request.name in self.models else None

    def _QueryLossCurves(self, request):
        return experiment_service_pb2.QueryLossCurvesResponse()

    def _QueryAttentionMaps(self, request):
        return iter(self.maps.get(request.name, []))

    def _QueryProjections(self, request):
        return iter(())

    def _ListCatalogueEntries(self, request):
        return catalogue_service_pb2.ListCatalogueEntriesResponse(entries=self.entries)

    def _QueryAnalyses(self, request):
        return iter([one for one in self.analyses if f"{one.trial}/".startswith(f"{request.name}/")])

    def _QueryLengthAccuracies(self, request):
        evaluations = [one for one in self.evaluations if f"{one.trial}/".startswith(f"{request.name}/")]
        for one in evaluations:
            served.set_means(one.accuracies, self.trials[one.trial].specification.evaluation.seen_up_to)
        return experiment_service_pb2.QueryLengthAccuraciesResponse(evaluations=evaluations)
